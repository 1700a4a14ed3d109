/**
 * The tool that runs seeds: its output and exit status, its threads, and how it shrinks. A mutant
 * stands for a real fault.
 */
import { LeatError } from "../../core/error.ts";
import { counted } from "../../cli/lib/counted.ts";
import { parseCommandLine, UsageError } from "../../cli/lib/args.ts";
import { HELP_COLUMNS, helpText } from "../../cli/lib/help.ts";
import { NO_FAULTS } from "../../sim/faults/options.ts";
import { drawOptions } from "../../sim/workloads/swarm.ts";
import { WORKLOAD_FAULTS } from "../../sim/workloads/workload.ts";
import { FAULT_NAMES, PARTITIONS } from "../../sim/vopr/fault_values.ts";
import { formatFaults, parseCrash, parseFaults, repeatCommand } from "../../sim/vopr/flags.ts";
import { Lane } from "../../sim/vopr/lane.ts";
import { runDynamic } from "../../sim/workloads/workload_dynamic.ts";
import { huntMutant } from "../../sim/vopr/mutant_hunt.ts";
import { SeedPool } from "../../sim/vopr/pool.ts";
import { progressText } from "../../sim/vopr/progress.ts";
import { runSeed, type SeedRun } from "../../sim/vopr/seed_run.ts";
import { shrink } from "../../sim/vopr/shrink.ts";
import { mutantOptions } from "../../sim/mutants/mutant.ts";
import { MUTANTS } from "../../sim/mutants/mutants.ts";
import { PROGRAM } from "../../sim/vopr.ts";
import { WORKLOADS } from "../../sim/workloads/workloads.ts";
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";
import { interruptedAt } from "../cli/interruption.ts";
import { startChild } from "../lib/child.ts";
import { until } from "../lib/until.ts";

const FLAGS = ["-P=vopr"];

/** Runs the tool to its end. */
async function vopr(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  await using child = startChild("sim/vopr.ts", { args, flags: FLAGS });
  const { code } = await child.status;
  return { code, stdout: child.stdout.text, stderr: child.stderr.text };
}

const SEED_MS = 60_000;
/** Faults that lose nearly everything, for as long as the run lasts. */
const LOST = "lossProbability=0.9,healAfterMaxMs=1000000000";

/** A run that breaks a promise. */
async function findFailing(name: string): Promise<SeedRun> {
  using pool = new SeedPool({ jobs: 0, seedTimeoutMs: SEED_MS });
  const mutant = MUTANTS.get(name)!;
  const { caughtAt } = await huntMutant(pool, mutant, { first: 1n, seedsMax: 20 });
  const options = { seed: caughtAt!, crashes: mutant.crashes ?? [], faults: WORKLOAD_FAULTS };
  return { index: 0, workload: mutant.workload, mutant: name, options };
}

let found: Promise<SeedRun> | undefined;
const failing = () => found ??= findFailing("answer-before-sync");

Deno.test("vopr reports at Ctrl-C what was done and what is lost, in every phase, and exits with status 130", async () => {
  const looks: [args: string[], begun: string, said: RegExp][] = [
    [["--mutants"], "^Running \\d+ mutants", /^Interrupted: \d+ of \d+ mutants were run/m],
    [
      // Its trainers find no dispatcher, and retry until the maximum number of events.
      ["--timeline", "--workload", "sharing", "--crashes", "none", "--faults", LOST],
      "^sharing: SEED=1",
      /^Interrupted: the run of seed 1 of sharing has not ended/m,
    ],
    [
      // A failing run lasts as long as possible, and shrinking takes the whole time limit.
      ["--mutant", "forget-lost-splits", "--seeds", "1"],
      "^Shrinking seed",
      /^Interrupted: the failures above are not shrunk/m,
    ],
  ];
  for (const [args, begun, said] of looks) {
    await using child = startChild("sim/vopr.ts", {
      args: [...args, "--jobs", "0"],
      flags: [...FLAGS, ...interruptedAt({ line: begun })],
    });
    assertEquals((await child.status).code, 130, child.stdout.text);
    assertMatch(child.stderr.text, said);
  }
});

Deno.test("vopr: a broken seed exits with status 1 and prints a command that repeats the shrunk run", async () => {
  const { mutant, options: { seed } } = await failing();
  const args = ["--mutant", mutant!, "--seed", `${seed}`, "--seeds", "1", "--jobs", "0"];
  const { code, stdout } = await vopr(...args);
  assertEquals(code, 1);
  assertMatch(stdout, /what remained necessary: crashes dispatcher, faults /);
  const [, command] = /^Repeat it with: deno task vopr (.+)$/m.exec(stdout)!;
  const again = await vopr(...command!.split(" "));
  assertEquals(again.code, 1);
  const [violation] = /^VIOLATION splits: .*$/m.exec(stdout)!;
  assertStringIncludes(again.stdout, violation);
});

Deno.test("vopr: seeds that keep every promise end with status 0 and a table of workloads", async () => {
  const { code, stdout } = await vopr("--workload", "off", "--seeds", "3", "--jobs", "2");
  assertEquals(code, 0);
  assertMatch(stdout, /│ off +│ +3 │/);
  assertMatch(stdout, /3 seeds in .* 0 failed/);
});

Deno.test("vopr --crash reports how many crash points it has tried, and refuses one that does not exist", async () => {
  const crash = (point: string, ...args: string[]) =>
    vopr("--crash", point, "--workload", "off", "--jobs", "0", ...args);
  const cut = await crash("worker", "--minutes", "0.001");
  assertEquals(cut.code, 0);
  const [, tried, all] = /^(\d+) of (\d+) crash points in /m.exec(cut.stdout) ?? [];
  assert(Number(tried) > 0 && Number(tried) < Number(all), cut.stdout);
  assertMatch(cut.stdout, /│ crash points │/);
  assert(!cut.stdout.includes("seed"), cut.stdout);
  const last = await crash(`worker@${all}`, "--hashes");
  assertMatch(last.stdout, new RegExp(`^off 1 worker@${all} [0-9a-f]{64}$`, "m"));
  assertMatch(last.stdout, /^1 crash point in /m);
  const beyond = await crash(`worker@${Number(all) + 1}`);
  assertEquals(beyond.code, 2);
  assertStringIncludes(beyond.stderr, `that node has ${all} messages: give one of 1 to ${all}`);
});

Deno.test("vopr --timeline ends with a verdict", async () => {
  const held = await vopr("--timeline", "--workload", "off", "--crash", "worker@7");
  assertEquals(held.code, 0);
  assertMatch(held.stdout, /\nHeld: every promise, in \d+ events\n$/);
  const { mutant, options: { seed } } = await failing();
  const broken = await vopr("--timeline", "--mutant", mutant!, "--seed", `${seed}`);
  assertEquals(broken.code, 1);
  const { length } = broken.stdout.match(/^VIOLATION /gm)!;
  assert(broken.stdout.endsWith(`\nBroken: ${counted(length, "violation")}, above\n`));
});

Deno.test("vopr --timeline --hashes prints the hash of the run without a timeline", async () => {
  const args = ["--hashes", "--workload", "off", "--seed", "3"];
  const line = /^off 3 [0-9a-f]{64}$/m;
  const { stdout } = await vopr(...args, "--timeline");
  const alone = await vopr(...args, "--seeds", "1", "--jobs", "0");
  assertEquals(line.exec(stdout)?.[0], line.exec(alone.stdout)![0]);
});

Deno.test("vopr: a timeline holds the seed, the options, the messages and no path of this machine", async () => {
  const args = ["--workload", "dynamic", "--seed", "5", "--timeline"];
  await using child = startChild("sim/vopr.ts", { args, flags: FLAGS });
  await child.line(/^dynamic: SEED=5 crashes=\S+ lossProbability=/);
  await child.line(
    /ms {2}worker-\d>dispatcher sent ask #\d+ getSplit \/worker\/task-\d+-[0-9a-f]+ → \/dispatcher/,
  );
  await child.line(/healed/);
  const { cluster } = await runDynamic(drawOptions(5n));
  assertEquals(cluster.trace.lines, []);
  assertMatch(cluster.trace.hash, /^[0-9a-f]{64}$/);
});

Deno.test("vopr refuses an invalid value, naming it and the allowed ones", async () => {
  const { code, stderr } = await vopr("--faults", "lossProbability=much");
  assertEquals(code, 2);
  assertStringIncludes(stderr, "--faults: lossProbability is 'much', but has to be a number");
  assertThrows(() => parseCrash("nobody@3"), LeatError, "--crash is 'nobody'");
  assertThrows(
    () => parseCrash("worker@0"),
    LeatError,
    "'worker@0', but messages are numbered from 1",
  );
  assertThrows(() => parseFaults("nothing=1"), LeatError, "no fault 'nothing'");
});

Deno.test("parseFaults refuses invalid values, naming the value and what is allowed", () => {
  const refused: [text: string, ...parts: string[]][] = [
    ["lossProbability=2", "lossProbability is '2'", "from 0 to 1, as in lossProbability=0.1"],
    ["lossProbability=-1", "'-1'", "from 0 to 1"],
    ["lossProbability=", "lossProbability is ''"],
    ["directionShareMin=1.5", "'1.5'", "from 0 to 1"],
    ["delayMaxMs=Infinity", "delayMaxMs is 'Infinity'", "a number of ms from 0 to 10000"],
    ["delayMaxMs=-1", "'-1'"],
    ["healAfterMaxMs=NaN", "'NaN'"],
    ["clockDriftPpmMax=1000000", "from 0 to 500000"],
    ["bytesPerSecond=0", "from 1000 to"],
    ["partition=nope", "partition is 'nope'", "none, isolate_one, halves"],
    ["partitionSymmetric=1", "true, false"],
    ["delayMinMs=50,delayMaxMs=1", "delayMinMs is 50, and delayMaxMs is 1: give a delayMaxMs"],
    ["diskSyncMinMs=5", "diskSyncMaxMs is 2 unless it is given"],
    ["lossProbability=0.1,lossProbability=0.2", "lossProbability twice"],
    ["nothing=1", "no fault 'nothing'", "lossProbability"],
  ];
  for (const [text, ...parts] of refused) {
    const error = assertThrows(() => parseFaults(text), LeatError, "--faults");
    assertEquals(error.code, "invalid_argument");
    for (const part of parts) assertStringIncludes(error.message, part);
  }
  const taken = "lossProbability=1,delayMinMs=2.50,delayMaxMs=1e3,partition=isolate_one";
  assertEquals(parseFaults(taken), {
    ...NO_FAULTS,
    ...{ lossProbability: 1, delayMinMs: 2.5, delayMaxMs: 1_000, partition: "isolate_one" },
  });
});

Deno.test("vopr --help names every fault, partition, workload and mutant, in columns of the page", () => {
  const help = helpText(PROGRAM);
  const words = new Set(help.split(/[\s,.]+/));
  const names = [...FAULT_NAMES, ...PARTITIONS, ...Object.keys(WORKLOADS), ...MUTANTS.keys()];
  assertEquals(names.filter((name) => !words.has(name)), []);
  assertEquals(help.split("\n").filter((line) => line.length > HELP_COLUMNS), []);
  assertMatch(help, /^ {2}autoscaling {2}DYNAMIC/m);
  assertMatch(help, /^ {2}off {10}two clients/m);
});

Deno.test("vopr refuses each option that another one would override, and names both with the remedy", async () => {
  const pairs: [winner: string, ignored: string[]][] = [
    ["--mutants", [
      ...["--mutant=skip-fences", "--minutes=1", "--faults=none", "--crashes=none"],
      ...["--crash=worker", "--timeline", "--hashes"],
    ]],
    ["--crash=worker@1", ["--faults=none", "--crashes=none", "--seeds=2"]],
    ["--timeline", [
      ...["--seeds=2", "--minutes=1", "--jobs=2", "--seed-timeout-s=9"],
      "--crash=worker",
    ]],
    ["--jobs=0", ["--seed-timeout-s=9"]],
  ];
  for (const [winner, ignored] of pairs) {
    for (const loser of ignored) {
      for (const args of [[winner, loser], [loser, winner]]) {
        const error = await assertRejects(() => parseCommandLine(PROGRAM, args), UsageError);
        for (const name of args) assertStringIncludes(error.message, name.split("=")[0]!);
        assertMatch(error.message, /: (leave|name)/);
      }
    }
  }
  const obeyed = [
    ["--mutants", "--workload=static", "--seeds=2", "--seed=3", "--jobs=1", "--seed-timeout-s=9"],
    ["--crash=worker", "--workload=off", "--mutant=skip-fences", "--minutes=1", "--hashes"],
    ["--timeline", "--crash=worker@7", "--mutant=skip-fences", "--jobs=0", "--seed=3"],
    ["--timeline", "--faults=none", "--crashes=none"],
    ["--seeds=2", "--minutes=1", "--faults=none", "--crashes=worker", "--mutant=skip-fences"],
  ];
  for (const args of obeyed) await parseCommandLine(PROGRAM, args);
});

Deno.test("vopr --mutants --workload runs only the mutants of that workload, and refuses one without mutants", async () => {
  const args = ["--seeds", "20", "--jobs", "0"];
  const { code, stdout } = await vopr("--mutants", "--workload", "static", ...args);
  const own = [...MUTANTS.values()].filter(({ workload }) => workload === "static");
  assertEquals(code, 0, stdout);
  for (const { name } of own) assertStringIncludes(stdout, name);
  assertStringIncludes(stdout, `${own.length} of ${own.length} mutants were noticed`);
  const none = Object.keys(WORKLOADS)
    .find((name) => ![...MUTANTS.values()].some(({ workload }) => workload === name))!;
  const refused = await vopr("--mutants", "--workload", none, ...args);
  assertEquals(refused.code, 2);
  assertStringIncludes(refused.stderr, `--workload ${none} has no mutants`);
});

Deno.test("huntMutant: returns the lowest seed that notices, whatever the order of runs and the number of threads", async () => {
  const mutant = MUTANTS.get("neighbours-share")!;
  const limits = { first: 1n, seedsMax: 40 };
  const hunt = async (jobs: number) => {
    using pool = new SeedPool({ jobs, seedTimeoutMs: SEED_MS });
    const { caughtAt, seeds, violation } = await huntMutant(pool, mutant, limits);
    return { caughtAt, seeds, violation };
  };
  const alone = await hunt(0);
  assert(alone.seeds > 1 && alone.caughtAt === BigInt(alone.seeds), `seed ${alone.caughtAt}`);
  assertEquals(await hunt(2), alone);
  // All run in parallel, and end in reverse order.
  const pool: Pick<SeedPool, "runAll"> = {
    async runAll(runs, onOutcome) {
      const sound = { hash: "", events: 0, cpuMs: 0, counts: [] };
      for (const run of [...runs].reverse()) {
        const violations = run.index >= 7 ? [`seed ${run.options.seed}`] : [];
        await onOutcome({ ...sound, run, violations, checkers: ["shares"] });
      }
    },
  };
  const { caughtAt, seeds, violation } = await huntMutant(pool, mutant, { first: 5n, seedsMax: 9 });
  assertEquals([caughtAt, seeds, violation], [12n, 8, "seed 12"]);
});

Deno.test("progressText uses the given nouns, and shows events only if they are counted", () => {
  const limits = { runs: 59, timeMs: Infinity };
  const wording = { noun: "mutant", failed: "not noticed" };
  assertEquals(
    progressText({ done: 28, failed: 1 }, limits, 20_000, wording),
    "28/59 mutants, 1.4/s, 1 not noticed, 0:22 left",
  );
  assertEquals(
    progressText({ done: 1, failed: 0, eventsPerMs: 70 }, { runs: Infinity, timeMs: 4_000 }, 1_000),
    "1 seed, 1.0/s, 70 events/ms of a core, 0 failed, 0:03 left",
  );
});

Deno.test("SeedPool gives the same hashes on other threads as on this one", async () => {
  const runs = Array.from({ length: 4 }, (_, index): SeedRun => ({
    index,
    workload: index % 2 === 0 ? "dynamic" : "saving",
    options: drawOptions(BigInt(1 + index)),
  }));
  const hashesWith = async (jobs: number) => {
    using pool = new SeedPool({ jobs, seedTimeoutMs: SEED_MS });
    const hashes: string[] = [];
    await pool.runAll(runs, ({ run, hash }) => void (hashes[run.index] = hash));
    return hashes;
  };
  const alone = await hashesWith(0);
  assertEquals(new Set(alone).size, runs.length);
  assertEquals(await hashesWith(2), alone);
});

Deno.test("shrink leaves the crash and few faults of a run that fails, with the same checker", async () => {
  const failed = await runSeed(await failing());
  const before = Object.keys(parseFaults(formatFaults(failed.run.options.faults)))
    .filter((name) => isSet(failed.run, name)).length;
  const { run, violations, runs } = await shrink(failed, { run: runSeed, width: 1, runsMax: 60 });
  assert(runs <= 60);
  assertMatch(violations[0]!, new RegExp(`^${failed.checkers[0]}: `));
  assertEquals(run.options.crashes, ["dispatcher"]);
  const after = Object.keys(run.options.faults).filter((name) => isSet(run, name)).length;
  assert(after < before, `${before} faults before, ${after} after`);
  assert((await runSeed(run)).checkers.includes(failed.checkers[0]!));
});

function isSet({ options: { faults } }: SeedRun, name: string): boolean {
  const calm: Readonly<Record<string, unknown>> = { ...NO_FAULTS };
  const all: Readonly<Record<string, unknown>> = { ...faults };
  return all[name] !== calm[name];
}

Deno.test("Lane reports a seed that does not end or kills its thread, and runs the following ones", async () => {
  const run = (index: number): SeedRun => ({ index, workload: "off", options: drawOptions(1n) });
  const answer = `self.postMessage({ run: data, violations: [], checkers: [] })`;
  const module = (bad: string) =>
    new URL(`data:text/javascript,${
      encodeURIComponent(
        `self.onmessage = ({ data }) => { if (data.index === 0) { ${bad} } else ${answer}; };` +
          `self.postMessage("ready");`,
      )
    }`);
  for (
    const [bad, seedTimeoutMs, says] of [
      [
        "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
        3_000,
        /has not ended after 3 s/,
      ],
      ["throw new Error('gone')", 600_000, /its thread has died: .*gone/],
    ] as const
  ) {
    using lane = new Lane({ seedTimeoutMs, module: module(bad) });
    const [first, second] = await Promise.all([lane.run(run(0)), lane.run(run(1))]);
    assertMatch(first.violations[0]!, says);
    assertEquals(first.run.index, 0);
    assertEquals(second.run.index, 1);
    // A busy machine may take longer than the time limit for this one, too.
    let { violations } = second;
    await until(async () => {
      if (violations.length > 0) ({ violations } = await lane.run(run(1)));
      return violations.length === 0;
    });
  }
});

Deno.test("flags: faults and crashes are parsed as they are formatted, and a drawn run needs only its seed", () => {
  for (let seed = 1n; seed <= 20n; seed++) {
    const options = drawOptions(seed);
    assertEquals({ ...parseFaults(formatFaults(options.faults)) }, { ...options.faults });
    assertEquals(
      repeatCommand({ index: 0, workload: "off", options }),
      `deno task vopr --workload off --seed ${seed} --timeline`,
    );
  }
  for (const mutant of MUTANTS.values()) {
    const { faults } = mutantOptions(mutant, 1n);
    assertEquals({ ...parseFaults(formatFaults(faults)) }, { ...NO_FAULTS, ...faults });
  }
  assertEquals(parseCrash("worker@7"), { role: "worker", message: 7 });
  assertThrows(() => parseFaults("lossProbability"), LeatError);
});
