/**
 * A dispatcher and one worker in a process of their own. Its argument is JSON of further options of
 * both. Prints the address, and ends with its standard input.
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
}

const { dispatcher: more, worker } = JSON.parse(Deno.args[0]!) as ServiceOptions;
await using dispatcher = await serveDispatcher({ logLevel: "error", ...more });
await using _worker = await serveWorker({
  dispatcher: dispatcher.address,
  logLevel: "error",
  ...worker,
});
console.log(dispatcher.address);
for await (const _ of Deno.stdin.readable);
