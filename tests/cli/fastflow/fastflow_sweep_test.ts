/** What the measured sweep chooses and concludes. Measuring itself takes minutes. */
import {
  ALL_REMOTE,
  coarseChoices,
  finalistsOf,
  fineChoices,
  HALF_REMOTE,
  judge,
  keyOf,
  LOCAL,
  type Timed,
} from "../../../cli/fastflow/sweep/choices.ts";
import { divideCpus, parseCpuList } from "../../../cli/fastflow/sweep/cpus.ts";
import { isWaiting, nameOf, SWEPT } from "../../../cli/fastflow/sweep/environments.ts";
import type { OffloadChoice } from "../../../mod.ts";
import { assert, assertAlmostEquals, assertEquals } from "../../assert.ts";

const cpusOf = (count: number, coreOf: (cpu: number) => number) =>
  Array.from({ length: count }, (_, cpu) => ({ cpu: `${cpu}`, core: `${coreOf(cpu)}` }));

Deno.test("divideCpus gives a trainer and its workers a physical core each, or none", () => {
  const two = divideCpus(cpusOf(2, (cpu) => cpu));
  assertEquals(two, { lanes: [{ trainer: "0", service: "1" }] });
  // CPUs i and i + 4 are one core.
  const threads = divideCpus(cpusOf(8, (cpu) => cpu % 4));
  assertEquals(threads.lanes, [{ trainer: "0", service: "1" }, { trainer: "2", service: "3" }]);
  const small = divideCpus(cpusOf(2, () => 0));
  assertEquals(small.lanes, [{}]);
  assertEquals(small.whyShared, "2 CPUs on 1 cores; 2 are needed");
  assertEquals([...parseCpuList(" 0-2,5\n")], ["0", "1", "2", "5"]);
});

Deno.test("the measured sweep has 20 environments without a cable, each with a name of its own", () => {
  assert(SWEPT.filter(({ link }) => link === "loopback").length >= 20);
  const names = SWEPT.map((at) => `${at.letter} ${nameOf(at)}`);
  assertEquals(new Set(names).size, SWEPT.length);
  // Workers that compute would share one CPU.
  assert(SWEPT.every((at) => at.workers === 1 || isWaiting(at)));
});

const DECISION = { candidate: "p'2", ratio: 0.54 };
const CANDIDATES = ["p'1", "p'2", "p'3"];

/** A choice's only run took so long. */
function timed(choices: readonly OffloadChoice[], ms: (key: string) => number): Timed[] {
  return choices.map((choice) => ({ choice, times: [ms(keyOf(choice))] }));
}

Deno.test("brute force tries every candidate, and all ratios of those that may be the fastest", () => {
  const coarse = coarseChoices(CANDIDATES);
  assertEquals(new Set(coarse.map(keyOf)).size, 1 + 3 * 2);
  for (const fixed of [LOCAL, ALL_REMOTE, HALF_REMOTE]) {
    assert(coarse.some((one) => keyOf(one) === keyOf(fixed)));
  }
  const times: Record<string, number> = { "p'2 100": 10, "p'3 50": 12.9, "p'1 50": 13.1 };
  const fine = fineChoices(timed(coarse, (key) => times[key] ?? 40));
  assertEquals(fine.map(keyOf), ["p'2 25", "p'2 75", "p'3 25", "p'3 75"]);
});

Deno.test("finalistsOf keeps the decision, the fastest, and a ratio beside it", () => {
  const all = [...coarseChoices(CANDIDATES), { candidate: "p'2", ratio: 0.75 }];
  const times: Record<string, number> = { "null 0": 12, "p'2 75": 10, "p'2 50": 11, "p'2 100": 12 };
  const found = finalistsOf(timed(all, (key) => times[key] ?? 40), DECISION).map(keyOf);
  assertEquals(found, ["p'2 54", "null 0", "p'2 75", "p'2 50", "p'2 63"]);
  const local = finalistsOf(timed(all, (key) => key === "null 0" ? 9 : 40), DECISION).map(keyOf);
  assertEquals(local.slice(0, 2), ["p'2 54", "null 0"]);
});

Deno.test("judge compares medians of the rounds, and says how exact they are", () => {
  const rounds: Timed[] = [
    { choice: DECISION, times: [10, 10.2, 30] },
    { choice: { candidate: "p'2", ratio: 0.6 }, times: [9.8, 10, 9.9] },
    { choice: LOCAL, times: [12, 12, 12] },
  ];
  const first = timed(coarseChoices(CANDIDATES), () => 40);
  const verdict = judge(DECISION, rounds, first, [9.9, 9.8, 20]);
  assertEquals([keyOf(verdict.best), keyOf(verdict.bestOfThree)], ["p'2 60", "null 0"]);
  assertAlmostEquals(verdict.decided.ofAll, 1 - 9.9 / 10.2, 1e-9);
  assertAlmostEquals(verdict.decided.ofThree, 1 - 12 / 10.2, 1e-9);
  assert(verdict.decided.error > 0.1 && verdict.spread > 0);
  // A corrected training is no choice of brute force: it may be as good as the best one.
  assertAlmostEquals(verdict.corrected.ofAll, 0, 1e-9);
  assertEquals(verdict.corrected.ms, 9.9);
  // Best of all: nothing is lost.
  assertEquals(judge(LOCAL, [rounds[2]!], first, [12, 12, 12]).decided.ofAll, 0);
});
