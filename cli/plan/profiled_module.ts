/**
 * Profiles the pipeline of a user's module on a thread of its own, as on a worker: a function that
 * never yields blocks only that thread, so that the program still handles Ctrl-C.
 */
import { Dataset, LeatError } from "../../mod.ts";
import { UsageError } from "../lib/args.ts";
import { Patience, type PatienceLimits, patienceMs } from "./patience.ts";
import type { Profile, ProfileOptions } from "./profile.ts";
import type { ProfileNews, ProfileRequest } from "./profile_thread.ts";
import { measureSplitMs } from "./split_cost.ts";

export interface ProfiledModule {
  readonly dataset: Dataset<unknown>;
  readonly profile: Profile;
}

interface ProfileModuleOptions extends ProfileOptions {
  /** Which export; see `loadPipeline`. */
  readonly export?: string | undefined;
  /** Called once the module is loaded. */
  readonly onLoaded?: () => void;
  /** Called once the pipeline is profiled, and the cost of its splits is measured. */
  readonly onProfiled?: () => void;
  /** The time limits without progress. Default: see `patienceMs`, for each. */
  readonly patience?: Partial<PatienceLimits>;
}

/**
 * Loads a module's pipeline, profiles it, and measures the cost of its splits, which takes some
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
): Promise<Extract<ProfileNews, { kind: "profiled" }>> {
  const { seconds, onLoaded, onProgress } = options;
  const profiled = Promise.withResolvers<Extract<ProfileNews, { kind: "profiled" }>>();
  const thread = new Worker(new URL("./profile_thread.ts", import.meta.url), {
    type: "module",
    name: "profile",
  });
  const forMs = patienceMs(seconds);
  const limits = { loadingMs: forMs, batchMs: forMs, ...options.patience };
  using patience = new Patience(module, limits, profiled.reject);
  thread.onmessage = ({ data: news }: MessageEvent<ProfileNews>) => {
    if (news.kind === "loaded") {
      patience.loaded();
      onLoaded?.();
    } else if (news.kind === "progress") {
      patience.came(news.batches);
      onProgress?.(news.batches, news.seconds);
    } else if (news.kind === "profiled") profiled.resolve(news);
    else profiled.reject(errorOf(news));
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

function errorOf({ error, isUsage }: Extract<ProfileNews, { kind: "failed" }>): LeatError {
  const known = LeatError.fromWire(error);
  return isUsage ? new UsageError(known.message, { cause: known.cause }) : known;
}
