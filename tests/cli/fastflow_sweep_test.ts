/** What the measured sweep chooses and concludes. Measuring itself takes minutes. */
import {
  ALL_REMOTE,
  bruteForce,
  finalistsOf,
  HALF_REMOTE,
  judge,
  keyOf,
  LOCAL,
  type Timed,
} from "../../cli/fastflow/sweep/choices.ts";
import { divideCpus, parseCpuList } from "../../cli/fastflow/sweep/cpus.ts";
import { CPUS_MAX, nameOf, SWEPT } from "../../cli/fastflow/sweep/environments.ts";
import { assert, assertAlmostEquals, assertEquals } from "../assert.ts";

const cpusOf = (count: number, coreOf: (cpu: number) => number) =>
  Array.from({ length: count }, (_, cpu) => ({ cpu: `${cpu}`, core: `${coreOf(cpu)}` }));

Deno.test("divideCpus gives each process a physical core of its own, or none", () => {
  const sixteen = divideCpus(cpusOf(16, (cpu) => cpu));
  assertEquals(sixteen.lanes.map(({ cpus }) => cpus.join()), ["0,1,2,3", "4,5,6,7", "8,9,10,11"]);
  assertEquals(sixteen.rest, "12,13,14,15");
  // CPUs i and i + 8 are one core: dispatchers run on the second threads.
  const threads = divideCpus(cpusOf(16, (cpu) => cpu % 8));
  assertEquals(threads.lanes.map(({ cpus }) => cpus.join()), ["0,1,2,3", "4,5,6,7"]);
  assertEquals(threads.rest, "8,9,10,11,12,13,14,15");
  const small = divideCpus(cpusOf(4, (cpu) => cpu));
  assertEquals(small.lanes, [{ cpus: [] }]);
  assertEquals(small.whyShared, "4 CPUs on 4 cores; 5 are needed");
  assertEquals([...parseCpuList(" 0-2,5\n")], ["0", "1", "2", "5"]);
});

Deno.test("the measured sweep has 20 environments without a cable, each with a name of its own", () => {
  assert(SWEPT.filter(({ link }) => link === "loopback").length >= 20);
  const names = SWEPT.map((at) => `${at.letter} ${nameOf(at)}`);
  assertEquals(new Set(names).size, SWEPT.length);
  assert(SWEPT.every(({ localCpus, workers }) => localCpus + workers <= CPUS_MAX));
});

const DECISION = { candidate: "p'2", ratio: 0.54 };
/** A choice's only run took so long. */
const first = (ms: (key: string) => number): Timed[] =>
  bruteForce(["p'2", "p'3"]).map((choice) => ({ choice, times: [ms(keyOf(choice))] }));

Deno.test("bruteForce tries every candidate and ratio, and local only", () => {
  const keys = bruteForce(["p'1", "p'2", "p'3"]).map(keyOf);
  assertEquals(keys.length, 3 * 4 + 1);
  assertEquals(new Set(keys).size, keys.length);
  for (const fixed of [LOCAL, ALL_REMOTE, HALF_REMOTE]) assert(keys.includes(keyOf(fixed)));
});

Deno.test("finalistsOf keeps the decision, what is fast, and ratios near the fastest", () => {
  const times: Record<string, number> = {
    "null 0": 12,
    "p'2 75": 10,
    "p'2 50": 11,
    "p'3 75": 10.5,
  };
  const found = finalistsOf(first((key) => times[key] ?? 40), DECISION).map(keyOf);
  assertEquals(found, ["p'2 54", "null 0", "p'2 75", "p'3 75", "p'2 50", "p'2 65", "p'2 85"]);
});

Deno.test("judge compares medians of the rounds, and says how exact they are", () => {
  const rounds: Timed[] = [
    { choice: DECISION, times: [10, 10.2, 30] },
    { choice: { candidate: "p'2", ratio: 0.6 }, times: [9.8, 10, 9.9] },
    { choice: LOCAL, times: [12, 12, 12] },
  ];
  const verdict = judge(DECISION, rounds, first(() => 40));
  assertEquals([keyOf(verdict.best), keyOf(verdict.bestOfThree)], ["p'2 60", "null 0"]);
  assertAlmostEquals(verdict.regret, 1 - 9.9 / 10.2, 1e-9);
  assertAlmostEquals(verdict.regretOfThree, 1 - 12 / 10.2, 1e-9);
  assert(verdict.error > 0.1 && verdict.spread > 0);
  // Best of all: nothing is lost.
  assertEquals(judge(LOCAL, [rounds[2]!], first(() => 40)).regret, 0);
});
