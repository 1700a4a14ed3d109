/**
 * Profiles the pipeline of a user's module on a separate thread, where a worker would run it. A
 * function that never yields blocks only that thread, so the program still handles Ctrl-C.
 */
import { Dataset, LeatError } from "../../mod.ts";
import { UsageError } from "../lib/args.ts";
import { ProgressTimeout, timeLimitMs, type TimeLimits } from "./progress_timeout.ts";
import type { Profile, ProfileOptions } from "./profile.ts";
import type { ProfileMessage, ProfileRequest } from "./profile_thread.ts";
import { measureSplitMs } from "./split_cost.ts";

export interface ProfiledModule {
  readonly dataset: Dataset<unknown>;
  readonly profile: Profile;
}

interface ProfileModuleOptions extends ProfileOptions {
  /** The name of the export; see `loadPipeline`. */
  readonly export?: string | undefined;
  /** Called once the module is loaded. */
  readonly onLoaded?: () => void;
  /** Called once the pipeline is profiled, and the cost of its splits is measured. */
  readonly onProfiled?: () => void;
  /** The time limits. Default of each: {@linkcode timeLimitMs}. */
  readonly timeLimits?: Partial<TimeLimits>;
}

/**
 * Loads a module's pipeline, profiles it, and measures the cost of its splits. This takes some
 * seconds.
 * @throws {UsageError} and {@linkcode LeatError} as `loadPipeline` and `profilePipeline` do;
 * `failed_precondition` if an uncaught error ends the thread, or the module tries to;
 * `deadline_exceeded` if no batch comes within the time limit.
 */
export async function profileModule(
  module: string,
  options: ProfileModuleOptions,
): Promise<ProfiledModule> {
  const { graph, profile, isForeign } = await profileOnThread(module, options);
  options.onProfiled?.();
  const splitMs = profile.splitsPerBatch === undefined ? 0 : await measureSplitMs();
  return {
    dataset: Dataset.deserialize(graph, { trustPipeline: !isForeign }),
    profile: { ...profile, splitMs },
  };
}

async function profileOnThread(
  module: string,
  options: ProfileModuleOptions,
): Promise<Extract<ProfileMessage, { kind: "profiled" }>> {
  const { seconds, onLoaded, onProgress } = options;
  const profiled = Promise.withResolvers<Extract<ProfileMessage, { kind: "profiled" }>>();
  const thread = new Worker(new URL("./profile_thread.ts", import.meta.url), {
    type: "module",
    name: "profile",
  });
  const limitMs = timeLimitMs(seconds);
  const limits = { loadingMs: limitMs, batchMs: limitMs, ...options.timeLimits };
  using timeout = new ProgressTimeout(module, limits, profiled.reject);
  thread.onmessage = ({ data: message }: MessageEvent<ProfileMessage>) => {
    if (message.kind === "loaded") {
      timeout.loaded();
      onLoaded?.();
    } else if (message.kind === "progress") {
      timeout.received(message.batches);
      onProgress?.(message.batches, message.seconds);
    } else if (message.kind === "profiled") profiled.resolve(message);
    else profiled.reject(errorOf(message));
  };
  thread.onerror = (event) => {
    event.preventDefault();
    profiled.reject(
      new LeatError(
        "failed_precondition",
        `The thread of '${module}' has died of an uncaught error: ${event.message}`,
      ),
    );
  };
  const request: ProfileRequest = { module, export: options.export, seconds };
  thread.postMessage(request);
  try {
    return await profiled.promise;
  } finally {
    thread.terminate();
  }
}

function errorOf({ error, isUsageError }: Extract<ProfileMessage, { kind: "failed" }>): LeatError {
  const received = LeatError.fromWire(error);
  return isUsageError ? new UsageError(received.message, { cause: received.cause }) : received;
}
