/** A worker's runner that loads, for the test of `slot_folder.ts`. */
import { ConfinedRunners } from "../../../platform/sandbox/confined_runners.ts";
import { sandboxGrants } from "../../../platform/sandbox/grants.ts";

new ConfinedRunners(sandboxGrants());
console.log("loading");
// Otherwise the runner's first message would be read, and the folder removed.
if (Deno.args[0] === "stopped") Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
