/**
 * `deno task chaos`: processes that are killed, paused and disconnected while jobs run, and its
 * parts with real sockets.
 */
import { ProcessLogs } from "../../cli/chaos/process_logs.ts";
import { Relay } from "../../cli/chaos/relay.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { soon } from "./lib.ts";

const FLAGS = ["-P=cluster"];
/** Many processes are started, one after the other: on a busy machine each takes seconds. */
const PATIENCE_MS = 300_000;

Deno.test("jobs of three modes keep their guarantees under kills, pauses and cuts while workers come and go", async () => {
  await using child = startChild("cli/chaos.ts", {
    args: [
      ...["--minutes", "0.01", "--modes", "DYNAMIC,sharing,save", "--faults-per-run", "10"],
      ...[
        "--workers",
        "2",
        "--max-workers",
        "4",
        "--seed",
        "3",
        "--elements",
        "1000",
        "--work",
        "20000",
      ],
      ...["--between-ms", "200", "--down-ms", "200", "--pause-ms", "500"],
    ],
    flags: FLAGS,
    stopTimeoutMs: 20_000,
  });
  const { code } = await soon("the program's end", child.status, PATIENCE_MS);
  const said = `${child.stdout.text}\n${child.stderr.text}`;
  assertEquals(code, 0, said);
  const numbers = ["kills", "pauses", "cuts"].map((fault) =>
    Number(new RegExp(`^${fault} +(\\d+) `, "m").exec(child.stdout.text)?.[1])
  );
  assert(numbers.every((number) => number > 0), said);
  // A worker that paused for too long times out and loses its splits.
  const once = /^timed out +[1-9]/m.test(child.stdout.text) ? "(?:exactly|at most)" : "exactly";
  const dynamic = new RegExp(`DYNAMIC run 1: .* ${once} once`);
  for (const remark of [dynamic, /sharing run 1: /, /save run 1: /]) {
    assertMatch(child.stdout.text, remark);
  }
  assertMatch(
    child.stdout.text,
    /^scaled +\d+ started, \d+ stopped gracefully, \d+ of them cut short$/m,
  );
  assertMatch(child.stdout.text, /^promises +kept$/m);
});

Deno.test("chaos ends with status 1, the seed, the broken guarantee and the logs when a job hangs", async () => {
  await using child = startChild("cli/chaos.ts", {
    args: [
      ...["--modes", "DYNAMIC", "--workers", "1", "--elements", "32", "--seed", "8"],
      ...["--faults", "cut", "--patience-s", "1", "--work", "2000000000"],
    ],
    flags: FLAGS,
    stopTimeoutMs: 20_000,
  });
  const { code } = await soon("the program's end", child.status, PATIENCE_MS);
  assertEquals(code, 1, child.stderr.text);
  assertMatch(
    child.stdout.text,
    /^promises +BROKEN: training: DYNAMIC failed: nothing came for 1 s/m,
  );
  const [, seed, folder = ""] = /--seed (\d+); logs of the processes: (\S+)/.exec(
    child.stderr.text,
  ) ?? [];
  assertEquals(seed, "8", child.stderr.text);
  assertStringIncludes(await Deno.readTextFile(`${folder}/dispatcher.log`), "worker-1");
  await Deno.remove(folder, { recursive: true });
});

Deno.test("cli/chaos.ts explains its options, and refuses invalid ones", async () => {
  const run = async (...args: string[]) => {
    await using child = startChild("cli/chaos.ts", { args, flags: FLAGS });
    const { code } = await child.status;
    return { code, out: child.stdout.text, err: child.stderr.text };
  };
  const help = await run("--help");
  assertEquals(help.code, 0);
  for (const part of ["Usage: deno task chaos", "--seed", "--faults", "kill,pause,cut"]) {
    assertStringIncludes(help.out, part);
  }
  const few = await run("--workers", "3", "--max-workers", "3");
  assertEquals(few.code, 2);
  assertStringIncludes(few.err, "--max-workers is 3 and --workers 3: raise it, or leave it out");
});

Deno.test("chaos counts workers that time out, not those that stop in order, and keeps readers' warnings", async () => {
  const logs = new ProcessLogs();
  const gone = (name: string) => logs.write("dispatcher", `INFO  Worker "${name}" is gone`);
  logs.setStopping("worker-1", true);
  gone("worker-1");
  gone("worker-2");
  assertEquals(logs.timedOut, 1);
  // It timed out while it was draining, and deregisters afterwards.
  gone("worker-1");
  logs.setStopping("worker-3", true);
  logs.setStopping("worker-3", false);
  gone("worker-3");
  assertEquals(logs.timedOut, 3);
  logs.logReader("warn", "WARN  Cannot read");
  assertEquals(logs.warnings, 1);
  assertStringIncludes(await Deno.readTextFile(`${logs.folder}/readers.log`), "Cannot read");
  await logs.end(false);
  logs.logReader("warn", "WARN  Too late");
});

Deno.test("a relay forwards bytes, stalls them while frozen, and closes cut connections", async () => {
  using relay = new Relay();
  using server = Deno.listen({ hostname: "127.0.0.1", port: relay.port });
  const [hostname = "", port] = relay.advertise.split(":");
  using caller = await Deno.connect({ hostname, port: Number(port) });
  using process = await server.accept();
  const send = (text: string) => caller.write(new TextEncoder().encode(text));
  const bytes = new Uint8Array(16);
  const read = async () => {
    const count = await process.read(bytes);
    return count === null ? null : new TextDecoder().decode(bytes.subarray(0, count));
  };
  await send("one");
  assertEquals(await read(), "one");

  // Before the relay's own timer, and shorter: it fires first, however busy the machine is.
  let isThawed = false;
  const thaw = new Promise<void>((resolve) =>
    setTimeout(() => {
      isThawed = true;
      resolve();
    }, 250)
  );
  assertEquals(relay.cut("freeze", (count) => count - 1, 300), 1);
  await send("two");
  assertEquals(await read(), "two");
  assert(isThawed, "bytes came through a frozen connection");
  await thaw;

  relay.cut("half-close", undefined, 0);
  assertEquals(await read(), null);
  await process.write(new TextEncoder().encode("still"));
  assertEquals(await caller.read(bytes), 5);

  relay.cut("close", undefined, 0);
  assertEquals(await caller.read(bytes), null);
  assertEquals(relay.open, 0);
});
