/**
 * A dispatcher and its workers in a process of their own. Its argument is JSON of further options
 * of both. Prints the address, and ends with its standard input.
 */
import {
  type DispatcherServerConfig,
  serveDispatcher,
  serveWorker,
  type WorkerServerConfig,
} from "../../../mod.ts";

/** What the two are started with, in addition. */
export interface ServiceOptions {
  readonly dispatcher?: Partial<DispatcherServerConfig>;
  readonly worker?: Partial<WorkerServerConfig>;
  /** Default: one. */
  readonly workers?: number;
}

const { dispatcher: more, worker, workers = 1 } = JSON.parse(Deno.args[0]!) as ServiceOptions;
await using dispatcher = await serveDispatcher({ logLevel: "error", ...more });
await using stack = new AsyncDisposableStack();
for (let started = 0; started < workers; started++) {
  stack.use(
    await serveWorker({ dispatcher: dispatcher.address, logLevel: "error", ...worker }),
  );
}
console.log(dispatcher.address);
for await (const _ of Deno.stdin.readable);
