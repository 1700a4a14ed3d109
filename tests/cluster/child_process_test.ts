/** Programs of a cluster as child processes of another. */

import { ChildProcess } from "../../cli/cluster/child_process.ts";
import { assertEquals } from "../assert.ts";
import { soon } from "./lib.ts";

// Deno's resource sanitizer finds leaks.
Deno.test("a killed child process leaves no handle behind", async () => {
  const args = ["--port", "0"];
  const child = await ChildProcess.start("dispatcher", "cli/dispatcher.ts", args, {
    onLog: () => {},
  });
  child.kill();
  assertEquals(await soon("its end", child.ended), "SIGKILL");
});
