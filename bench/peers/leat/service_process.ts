/**
 * A process with a dispatcher and its workers. Its argument is JSON with further options of both. It
 * prints the dispatcher's address, and ends when its standard input ends.
 */
import {
  type DispatcherServerConfig,
  serveDispatcher,
  serveWorker,
  type WorkerServerConfig,
} from "../../../mod.ts";

/** Further options of the dispatcher and of each worker. */
export interface ServiceOptions {
  readonly dispatcher?: Partial<DispatcherServerConfig>;
  readonly worker?: Partial<WorkerServerConfig>;
  /** The number of workers. Default: one. */
  readonly workers?: number;
}

const { dispatcher: dispatcherOptions, worker, workers = 1 } = JSON.parse(
  Deno.args[0]!,
) as ServiceOptions;
await using dispatcher = await serveDispatcher({ logLevel: "error", ...dispatcherOptions });
await using stack = new AsyncDisposableStack();
for (let i = 0; i < workers; i++) {
  stack.use(
    await serveWorker({ dispatcher: dispatcher.address, logLevel: "error", ...worker }),
  );
}
console.log(dispatcher.address);
for await (const _ of Deno.stdin.readable);
