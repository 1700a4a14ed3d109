/**
 * A dispatcher and one worker in a process of their own. Prints the address, and ends with its
 * standard input.
 *
 * @module
 */
import { serveDispatcher, serveWorker } from "../../../mod.ts";

await using dispatcher = await serveDispatcher({ logLevel: "error" });
await using _worker = await serveWorker({
  dispatcher: dispatcher.address,
  logLevel: "error",
});
console.log(dispatcher.address);
for await (const _ of Deno.stdin.readable);
