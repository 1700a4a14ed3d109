/** Invalid values in all programs: refused before anything begins, with status 2. */

import { PROGRAM as memory } from "../../bench/costs/memory.ts";
import { PROGRAM as bench } from "../../bench/main.ts";
import { PROGRAM as benchPeers } from "../../bench/peers/main.ts";
import { PROGRAM as autoscale } from "../../cli/autoscale.ts";
import { PROGRAM as chaos } from "../../cli/chaos.ts";
import { PROGRAM as cluster } from "../../cli/cluster.ts";
import { PROGRAM as dispatcher } from "../../cli/dispatcher.ts";
import { startServing } from "../../cli/cluster/serving.ts";
import { readSandbox, SANDBOX_OPTIONS } from "../../cli/cluster/sandbox_options.ts";
import { readWorkerTags } from "../../cli/cluster/worker_arguments.ts";
import { parseCommandLine, UsageError } from "../../cli/lib/args.ts";
import type { Program } from "../../cli/lib/help.ts";
import type { Option } from "../../cli/lib/options.ts";
import { PROGRAM as fastflow } from "../../cli/fastflow.ts";
import { PROGRAM as mel } from "../../examples/mel.ts";
import { PROGRAM as plan } from "../../cli/plan.ts";
import { PROGRAM as scale } from "../../cli/scale.ts";
import { PROGRAM as simulate } from "../../cli/simulate.ts";
import { PROGRAM as soak } from "../../cli/soak.ts";
import { PROGRAM as status } from "../../cli/status.ts";
import { PROGRAM as worker } from "../../cli/worker.ts";
import { LeatError } from "../../core/error.ts";
import { serveDispatcher } from "../../server/dispatcher_server.ts";
import { PROGRAM as vopr } from "../../sim/vopr.ts";
import { PROGRAM as hashes } from "../../tools/hashes.ts";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertRejects,
  assertStringIncludes,
} from "../assert.ts";
import { startChild } from "../lib/child.ts";

type AnyProgram = Program<Record<string, Option<unknown>>>;

const PROGRAMS = [
  ...[autoscale, bench, benchPeers, chaos, cluster, dispatcher, fastflow, mel, memory, plan],
  ...[scale, simulate, soak, status, vopr, hashes, worker],
] as unknown as readonly AnyProgram[];

/** Required options besides the tested one. */
const REQUIRED = new Map<unknown, readonly string[]>([
  [autoscale, ["--dispatcher=ws://a:1"]],
  [plan, ["module.ts", "--step-ms=5"]],
  [worker, ["--dispatcher=ws://a:1"]],
]);

/** The error for a value of an option; undefined if it is accepted. */
async function refusalOf(
  program: unknown,
  option: string,
  value: string,
): Promise<string | undefined> {
  const others = (REQUIRED.get(program) ?? []).filter((arg) => !arg.startsWith(`${option}=`));
  try {
    await parseCommandLine(program as AnyProgram, [...others, `${option}=${value}`]);
    return undefined;
  } catch (error) {
    assertInstanceOf(error, UsageError);
    return error.message;
  }
}

function* numericOptions(): Iterable<[program: AnyProgram, option: string]> {
  for (const program of PROGRAMS) {
    for (const [key, { placeholder }] of Object.entries(program.options)) {
      if (!["N", "X", "X%", "MS", "S", "MB"].includes(placeholder ?? "")) continue;
      yield [program, `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`];
    }
  }
}

Deno.test("every numeric option of every program refuses invalid numbers", async () => {
  const names = new Set<string>();
  for (const [program, option] of numericOptions()) {
    names.add(option);
    // A number of bytes is exact.
    if (option.endsWith("-mib")) {
      const refusal = await refusalOf(program, option, `${Number.MAX_SAFE_INTEGER}`);
      assertStringIncludes(refusal ?? `${program.usage} takes it`, `${option} is`);
    }
    for (const value of ["-2", "NaN", "1e309", "99999999999999999999", "12x", ""]) {
      const refusal = await refusalOf(program, option, value);
      // A price, or another number that only multiplies, may be arbitrarily large.
      if (value === "99999999999999999999" && refusal === undefined) continue;
      assert(refusal !== undefined, `${program.usage} takes ${option}=${value}`);
      assertStringIncludes(refusal, value === "" ? `${option} needs a value` : `'${value}'`);
      assertStringIncludes(refusal, option);
    }
  }
  for (const one of ["--port", "--drain-ms", "--stall-max", "--step-ms", "--seeds", "--rounds"]) {
    assert(names.has(one), `${one} was not looked at`);
  }
});

Deno.test("every program refuses times that timers do not support", async () => {
  const taken: string[] = [];
  for (const [program, option] of numericOptions()) {
    if (!/-(ms|s)$/.test(option)) continue;
    const value = `${2 ** 31}`;
    if (await refusalOf(program, option, value) === undefined) taken.push(option);
  }
  assertEquals(taken, []);
});

Deno.test("every list of every program refuses an unknown part, with the same status as others", async () => {
  const lists: [program: unknown, option: string, value: string, remedy: string][] = [
    [chaos, "--faults", "kill,fire", "kill, pause, cut"],
    [chaos, "--modes", "DYNAMIC,", "DETERMINISTIC"],
    [soak, "--modes", "none", "DETERMINISTIC"],
    [simulate, "--only", "a,z", "a, b, c, d"],
    [simulate, "--workers", "1,x", "each 1 to 64, as 1,2,4"],
    [simulate, "--trainers", "1,65", "each 1 to 64, as 1,2,4"],
    [simulate, "--trainers", "2,4", "1 must be among them"],
    [scale, "--workers", "8,0", "each 1 to 20000, as 8,64,640,5000"],
    [scale, "--sweep", "8,none", "each 1 to 20000, as 8,64,512"],
    [dispatcher, "--workers", "a,,b", "names with commas between"],
    [dispatcher, "--workers", "a,b,a", "'a' twice"],
    [vopr, "--faults", "lossProbability=much", "lossProbability="],
    [vopr, "--crashes", "nobody", "has to be dispatcher, worker or client"],
  ];
  for (const [program, option, value, remedy] of lists) {
    const refusal = await refusalOf(program, option, value);
    assertStringIncludes(refusal ?? `${option}=${value} is taken`, option);
    assertStringIncludes(refusal ?? "", remedy);
  }
  assertEquals((await parseCommandLine(scale, ["--sweep", "none"])).sweep, []);
  assertEquals((await parseCommandLine(scale, ["--workers", "9, 8,9"])).workers, [8, 9]);
});

Deno.test("programs refuse options that exclude each other before they start", async () => {
  const pairs: [program: unknown, args: string[], message: string][] = [
    [
      autoscale,
      ["--min=5", "--max=4"],
      "--min is 5, more than --max, which is 4: raise one or lower the other",
    ],
    [chaos, ["--kills=3", "--faults=cut"], "--kills is 3, but --faults cut has no kill"],
    [chaos, ["--down-ms=3000", "--faults=pause,cut"], "--down-ms is 3000, but --faults pause,cut"],
    [chaos, ["--pause-ms=5000", "--faults=kill"], "--faults kill has no pause or cut: add one"],
    [chaos, ["--workers=3", "--max-workers=3"], "--max-workers is 3 and --workers 3: raise it"],
    [simulate, ["--only=c", "--images=d"], "--images is for (a) or (b) or (d), but --only is c"],
    [simulate, ["--only=a,b,d", "--text=f"], "--text is for (c), but --only is a,b,d"],
    [simulate, ["--only=b", "--workers=1"], "--workers is for (a), but --only is b"],
    [simulate, ["--only=c", "--trainers=1"], "--trainers is for (b), but --only is c"],
    [simulate, ["--only=d", "--step-time-ms=9"], "--step-time-ms is for (a) or (b)"],
    [simulate, ["--only=c", "--storage-latency-ms=40"], "--storage-latency-ms is for (a)"],
    [soak, ["--spared=1"], "--spared is 1, but there are no faults: add --chaos"],
    [status, ["--interval-ms=1000"], "the state is shown once: add --watch"],
    [
      dispatcher,
      ["--min-workers=5", "--max-workers=4"],
      "--min-workers is 5, more than --max-workers, which is 4: raise one or lower the other",
    ],
    [
      cluster,
      ["--kill-after=1000001"],
      "--kill-after is 1000001, but only 1000000 elements arrive (--elements 1000000, ",
    ],
    [
      cluster,
      ["--kill-after=31", "--elements=10", "--mode=OFF"],
      "--kill-after is 31, but only 30 elements arrive (--elements 10, --mode OFF): lower it, or",
    ],
    [autoscale, ["--name=a\0b"], "--name has to be a non-empty text"],
    [worker, ["--name=a\0b"], "--name has to be a non-empty text"],
    ...["--data-root", "--allow-net", "--allow-write", "--allow-udf-import", "--allow-python"].map((
      option,
    ): [unknown, string[], string] => [
      worker,
      ["--no-sandbox", `${option}=/data`],
      `--no-sandbox grants everything, and ${option} /data grants a part: give only one of them`,
    ]),
    ...["heap-mib=64", "memory-mib=1024", "timeout-ms=100"].map((
      arg,
    ): [unknown, string[], string] => [
      worker,
      ["--no-sandbox", `--function-${arg}`],
      `--no-sandbox limits nothing, and --function-${arg.split("=")[0]} limits the sandbox`,
    ]),
    ...["--runaway-threads-max", "--runaway-after-ms"].map((
      option,
    ): [unknown, string[], string] => [
      worker,
      [`${option}=5`],
      `${option} is for functions on threads, and the sandbox runs them in processes`,
    ]),
    [soak, ["--chaos=kill", "--spared=2"], "--spared is 2 of 2 workers"],
    [fastflow, ["--measured", "--modelled"], "--measured and --modelled"],
    [fastflow, ["--measured", "--quick"], "--quick does not shorten --measured"],
    [fastflow, ["--minutes=20"], "--minutes is 20, but only --measured"],
    [hashes, ["--write", "--seeds=3"], "--write records all"],
    [vopr, ["--mutants", "--crash=worker@1"], "--crash cannot be combined with --mutants"],
  ];
  for (const [program, args, message] of pairs) {
    const all = [...REQUIRED.get(program) ?? [], ...args];
    const error = await parseCommandLine(program as AnyProgram, all).then(
      () => {},
      (error) => error,
    );
    assertInstanceOf(error, UsageError);
    assertStringIncludes(error.message, message);
  }
  const killed = ["--kill-after=30", "--elements=10", "--mode=OFF"];
  assertEquals((await parseCommandLine(cluster, killed)).killAfter, 30);
});

Deno.test({
  name: "a worker that may not run Python names the command with which --allow-python works",
  permissions: { read: true, run: ["deno"] },
  async fn() {
    const args = ["--dispatcher=ws://a:1", "--allow-python=tests"];
    const values = await parseCommandLine(worker, args);
    const error = await assertRejects(() => readSandbox(values), UsageError);
    const command = "deno run -P=server --allow-run=deno,python3 cli/worker.ts";
    assertStringIncludes(error.message, command);
    assertStringIncludes(SANDBOX_OPTIONS.allowPython.help, command);
  },
});

Deno.test("readWorkerTags refuses what autoscale sets itself, and ports of which there is only one", async () => {
  const own = ["--dispatcher", "ws://a:1", "--token-file=token"];
  const cases: [given: string[], message: string][] = [
    [["--name", "x"], "sets --name of each worker: give the prefix of all names before --"],
    ...["--dispatcher", "--drain-ms", "--token", "--token-file", "--ca"].flatMap(
      (option): [string[], string][] => [
        [[option, "1"], `autoscale sets ${option} of each worker: give it before --`],
        [[`${option}=1`], `autoscale sets ${option} of each worker: give it before --`],
      ],
    ),
    [["--port", "5051"], "--port is 5051, but only one worker can listen there: leave it out"],
    [["--advertise", "h:5051"], "--advertise is h:5051, but only one worker can have this port"],
  ];
  for (const [given, message] of cases) {
    const error = await assertRejects(() => readWorkerTags(own, given), UsageError);
    assertStringIncludes(error.message, "The arguments for workers (after --) are wrong: ");
    assertStringIncludes(error.message, message);
  }
  const given = ["--port=0", "--advertise", "[::1]", "--tag", "a", "--tag=b"];
  assertEquals(await readWorkerTags(own, given), ["a", "b"]);
});

Deno.test("examples of the servers' programs that listen beyond this machine have a token", () => {
  for (const { notes = "" } of [dispatcher, worker]) {
    const examples = notes.replaceAll(/\\\n */g, "").split("\n").filter((line) =>
      /^ {2}\S/.test(line)
    );
    assert(examples.length > 2);
    for (const example of examples) {
      if (!/--host 0\.0\.0\.0|--dispatcher ws:\/\/(?!127)/.test(example)) continue;
      assertStringIncludes(example, "--token-file");
    }
  }
});

Deno.test("no program shows a secret that is given twice", async () => {
  const programs: unknown[] = [dispatcher, status, worker];
  for (const program of programs) {
    const others = REQUIRED.get(program) ?? [];
    const args = [...others, "--token", "SECRET1", "--token=SECRET2"];
    const error = await assertRejects(
      () => parseCommandLine(program as AnyProgram, args),
      UsageError,
    );
    assertStringIncludes(error.message, "--token is given 2 times");
    assert(!error.message.includes("SECRET"), error.message);
  }
});

Deno.test("listening beyond this machine without a token is a usage error of the servers' programs", async () => {
  const start = () => serveDispatcher({ hostname: "0.0.0.0", port: 0, logLevel: "off" });
  await assertRejects(() => startServing(start), UsageError, "--insecure");
  const held = new LeatError("failed_precondition", "Another dispatcher holds the journal");
  const error = await assertRejects(() => startServing(() => Promise.reject(held)));
  assertEquals(error, held);
});

Deno.test("tasks that write a file print --help, and refuse an unknown option with status 2", async () => {
  for (const task of ["metrics", "kernels"]) {
    await using helped = startChild(task, { command: "task", args: [task, "--help"] });
    assertEquals((await helped.status).code, 0);
    assertStringIncludes(helped.stdout.text, `Usage: deno task ${task}`);
    await using refused = startChild(task, { command: "task", args: [task, "--check"] });
    assertEquals((await refused.status).code, 2);
    assertStringIncludes(refused.stderr.text, "--check");
  }
});

Deno.test("the tasks of a cluster print none of Deno's warnings, also with a worker's grants", async () => {
  for (
    const [task, ...args] of [
      ["worker", "--allow-write=/data", "--help"],
      ["leat", "worker", "--allow-net=host:1", "--help"],
      ...["autoscale", "dispatcher", "status"].map((task) => [task, "--help"]),
    ]
  ) {
    await using child = startChild(task!, { command: "task", args });
    assertEquals((await child.status).code, 0);
    assertEquals(child.stderr.text, "", task);
  }
});
