/**
 * Errors that take less time to make. Deno has V8 write down of each where it was made, for the case
 * that nobody catches it, which takes ten times as long as the rest; a run of a few thousand events
 * makes a hundred.
 *
 * @module
 */
import { Session } from "node:inspector";

let isDone = false;

/**
 * Ends that for this thread: V8 does so where a debugger has come and gone. That takes the permission
 * to look at the system; without it nothing changes but how long runs take.
 */
export function makeErrorsQuick(): void {
  if (isDone) return;
  isDone = true;
  if (Deno.permissions.querySync({ name: "sys" }).state !== "granted") return;
  const session = new Session();
  session.connect();
  session.post("Runtime.enable");
  session.post("Runtime.disable");
  session.disconnect();
}
