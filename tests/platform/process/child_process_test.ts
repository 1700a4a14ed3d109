/** The end of a process that runs a program of Leat. */
import { ChildProcess } from "../../../platform/process/child_process.ts";
import { assertEquals, assertMatch } from "../../assert.ts";

/** Starts a process that inherits only standard error, prints its id, and is killed. */
const ORPHANING = "sleep 600 </dev/null >/dev/null & echo $! >&2; kill -KILL $$";

async function succeeds(command: string): Promise<boolean> {
  const { success } = await new Deno.Command("sh", { args: ["-c", command] }).output();
  return success;
}

Deno.test({
  name: "ChildProcess ends although a process that it started keeps its output open",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const child = new ChildProcess({
      name: "orphaning",
      program: { command: "sh", args: ["-c", ORPHANING] },
    });
    child.link.catch(() => {});
    const { signal, stderrTail } = await child.ended;
    assertEquals(signal, "SIGKILL");
    assertMatch(stderrTail, /^\d+\n$/);
    // The end did not wait for the process that keeps the output open.
    assertEquals(await succeeds(`kill -KILL ${stderrTail.trim()}`), true);
  },
});
