/** The end of a process that runs a program of Leat. */
import { fileURLToPath } from "node:url";
import { LeatError } from "../../../core/error.ts";
import { ChildProcess } from "../../../platform/process/child_process.ts";
import { Edge } from "../../../platform/sandbox/edge.ts";
import {
  assert,
  assertEquals,
  assertMatch,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { inFolder, namesIn } from "../../lib/temp_folder.ts";

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

Deno.test({
  name: "ChildProcess answers after the signals that stop the processes of a group",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const program = import.meta.resolve("./fixture_signalled.ts");
    const child = new ChildProcess({ name: "signalled", program });
    const edge = new Edge(child.link, child.local, {});
    const pid = await edge.ask("pid", null);
    for (const signal of ["INT", "TERM"]) {
      assertEquals(await succeeds(`kill -${signal} ${pid}`), true);
      assertEquals(await edge.ask("pid", null), pid);
    }
    child.kill();
    await child.ended;
  },
});

Deno.test({
  name: "ChildProcess names the limit of open files if it cannot start, and leaves nothing open",
  ignore: Deno.build.os !== "linux",
  fn: async () => {
    await inFolder(async (folder) => {
      const fixture = fileURLToPath(import.meta.resolve("./fixture_few_files.ts"));
      // All permissions, because without them Deno does not list `/dev/fd`.
      const run = `ulimit -n 64; exec deno run --no-prompt -A "${fixture}"`;
      const { stdout } = await new Deno.Command("sh", {
        args: ["-c", run],
        env: { TMPDIR: folder },
      }).output();
      const failures = new TextDecoder().decode(stdout).trim().split("\n")
        .map((line) => JSON.parse(line));
      assert(failures.length > 3, `${failures.length} starts failed`);
      for (const { code, message, leaked } of failures) {
        assertEquals([code, leaked], ["resource_exhausted", 0]);
        assertStringIncludes(message, "Raise the limit of open files (ulimit -n)");
      }
      assertEquals(await namesIn(folder), []);
    });
  },
});

Deno.test("ChildProcess refuses a folder for temporary files with a comma, and names TMPDIR", async () => {
  await inFolder(async (folder) => {
    const { makeTempDirSync } = Deno;
    await Deno.mkdir(`${folder}/a,b`);
    Deno.makeTempDirSync = (options) => makeTempDirSync({ ...options, dir: `${folder}/a,b` });
    const program = import.meta.resolve("./fixture_signalled.ts");
    try {
      const start = () => new ChildProcess({ name: "runner", program });
      const { code, message } = assertThrows(start, LeatError);
      assertEquals(code, "failed_precondition");
      assertStringIncludes(message, `${folder}/a,b, has a comma in its path`);
      assertStringIncludes(message, "Set TMPDIR");
    } finally {
      Deno.makeTempDirSync = makeTempDirSync;
    }
    assertEquals(await namesIn(`${folder}/a,b`), []);
  });
});

Deno.test({
  name:
    "ChildProcess logs a line that does not end, and says once that more than 1 MiB is left out",
  ignore: Deno.build.os === "windows",
  fn: async () => {
    const script = `{ printf 'a\\nb'; head -c ${
      2 ** 20
    } /dev/zero | tr '\\0' x; printf '\\nc\\nd'; } >&2`;
    const logged: Uint8Array[] = [];
    const { stderr } = Deno;
    const write = (chunk: Uint8Array) => logged.push(chunk) && chunk.length;
    Object.assign(stderr, {
      write: (chunk: Uint8Array) => Promise.resolve(write(chunk)),
      writeSync: write,
    });
    try {
      const program = { command: "sh", args: ["-c", script] };
      const child = new ChildProcess({ name: "printing", program });
      child.link.catch(() => {});
      const { stderrTail } = await child.ended;
      assertStringIncludes(stderrTail, "x\nc\nd");
      const short = new ChildProcess({
        name: "printing",
        program: { command: "sh", args: ["-c", "printf end >&2"] },
      });
      short.link.catch(() => {});
      await short.ended;
    } finally {
      Reflect.deleteProperty(stderr, "write");
      Reflect.deleteProperty(stderr, "writeSync");
    }
    const text = new TextDecoder().decode(await new Blob(logged as BlobPart[]).arrayBuffer());
    assertEquals(text.split("\n").map((line) => line.replace(/x{9,}/, "x…")), [
      "runner: a",
      "runner: bx…",
      "runner: (this process has printed more than 1048576 characters: the rest is left out)",
      "runner: end",
      "",
    ]);
  },
});
