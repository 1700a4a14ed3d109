/**
 * A dispatcher and one worker in a process of their own. Its argument is JSON of further options of
 * the worker. Prints the address, and ends with its standard input.
 *
 * @module
 */
import { serveDispatcher, serveWorker } from "../../../mod.ts";

await using dispatcher = await serveDispatcher({ logLevel: "error" });
await using _worker = await serveWorker({
  dispatcher: dispatcher.address,
  logLevel: "error",
  ...JSON.parse(Deno.args[0] ?? "{}"),
});
console.log(dispatcher.address);
for await (const _ of Deno.stdin.readable);
