/**
 * The program of the thread that loads and profiles a user's pipeline. It receives one request, and
 * sends messages about progress and the result.
 */
import { Console } from "node:console";
import process from "node:process";
import { isForeign } from "../../data/foreign/foreign.ts";
import { inPreOrder } from "../../data/node.ts";
import { LeatError } from "../../mod.ts";
import type { WireError } from "../../core/error.ts";
import { guardExits } from "../../platform/threads/exit_guard.ts";
import { UsageError } from "../lib/args.ts";
import { type Profile, profilePipeline } from "./profile.ts";
import { loadPipeline } from "./user_pipeline.ts";

export interface ProfileRequest {
  readonly module: string;
  readonly export: string | undefined;
  readonly seconds: number;
}

/** The thread's messages, in this order. `failed` may replace any of them. */
export type ProfileMessage =
  | { readonly kind: "loaded" }
  | { readonly kind: "progress"; readonly batches: number; readonly seconds: number }
  | {
    readonly kind: "profiled";
    readonly profile: Omit<Profile, "splitMs">;
    /** The serialised pipeline. */
    readonly graph: Uint8Array;
    /** Whether another program built a part of it. */
    readonly isForeign: boolean;
  }
  | { readonly kind: "failed"; readonly error: WireError; readonly isUsageError: boolean };

/** The global scope of a thread. */
interface ThreadScope {
  onmessage: (event: MessageEvent<ProfileRequest>) => void;
  postMessage(message: ProfileMessage): void;
}

// Standard output is reserved for the plan, which another program may read.
globalThis.console = new Console(process.stderr, process.stderr) as unknown as typeof console;
const scope = globalThis as unknown as ThreadScope;
scope.onmessage = async ({ data: request }) => {
  guardExits(
    (call) =>
      `'${request.module}' called ${call}, and a module that ends its thread cannot be a pipeline. Throw ` +
      "an error instead, or make this call in the program that imports the module",
    fail,
  );
  try {
    const dataset = await loadPipeline(request.module, request.export);
    const graph = dataset.serialize();
    scope.postMessage({ kind: "loaded" });
    const profile = await profilePipeline(dataset, {
      seconds: request.seconds,
      onProgress: (batches, seconds) => scope.postMessage({ kind: "progress", batches, seconds }),
    });
    scope.postMessage({
      ...{ kind: "profiled", profile, graph },
      isForeign: inPreOrder(dataset.node).some(isForeign),
    });
  } catch (error) {
    fail(error);
  }
};

function fail(error: unknown): void {
  const isUsageError = error instanceof UsageError;
  scope.postMessage({ kind: "failed", error: LeatError.from(error).toWire(), isUsageError });
}
