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
import { mean } from "../../../cli/lib/statistics.ts";
import { RandomStream } from "../../../core/philox.ts";
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

Deno.test("finalistsOf keeps the decision, all fixed choices, the fastest, and a ratio beside it", () => {
  const all = [...coarseChoices(CANDIDATES), { candidate: "p'2", ratio: 0.75 }];
  const times: Record<string, number> = { "null 0": 12, "p'2 75": 10, "p'2 50": 11, "p'2 100": 12 };
  const found = finalistsOf(timed(all, (key) => times[key] ?? 40), DECISION).map(keyOf);
  assertEquals(found, ["p'2 54", "null 0", "p'3 100", "p'3 50", "p'2 75", "p'2 63"]);
  const local = finalistsOf(timed(all, (key) => key === "null 0" ? 9 : 40), DECISION).map(keyOf);
  assertEquals(new Set(local), new Set(["p'2 54", "null 0", "p'3 100", "p'3 50"]));
});

Deno.test("judge compares each round, and says how exact the mean is", () => {
  const rounds: Timed[] = [
    { choice: DECISION, times: [10, 20, 40] },
    { choice: { candidate: "p'2", ratio: 0.6 }, times: [9, 18, 18] },
    { choice: LOCAL, times: [12, 24, 24] },
  ];
  const verdict = judge(DECISION, rounds, [9, 18, 18]);
  assertEquals([keyOf(verdict.best), keyOf(verdict.bestOfThree)], ["p'2 60", "null 0"]);
  assertEquals([verdict.bestMs, verdict.decided.ms], [18, 20]);
  assertAlmostEquals(verdict.decided.ofAll.share, 1 - (0.9 * 0.9 * 0.45) ** (1 / 3), 1e-9);
  assertAlmostEquals(verdict.decided.ofThree.share, 1 - (1.2 * 1.2 * 0.6) ** (1 / 3), 1e-9);
  assert(verdict.decided.ofAll.error > 0.1 && verdict.spread > 0);
  // A corrected training is no choice of brute force: it may be as good as the best one.
  assertAlmostEquals(verdict.corrected.ofAll.share, 0, 1e-9);
  assertAlmostEquals(verdict.corrected.ofAll.error, 0, 1e-9);
});

Deno.test("judge says of each loss how exact it is", () => {
  const rounds: Timed[] = [
    { choice: DECISION, times: [10, 10, 10] },
    { choice: { candidate: "p'2", ratio: 0.6 }, times: [8, 8, 8] },
    { choice: LOCAL, times: [9, 12, 15] },
  ];
  const { ofAll, ofThree } = judge(DECISION, rounds, [10, 10, 10]).decided;
  assertAlmostEquals(ofAll.error, 0, 1e-9);
  assert(ofThree.error > 0.1);
});

Deno.test("judge takes only choices that all rounds measured, not a fast time of the search", () => {
  const first = timed(coarseChoices(CANDIDATES), (key) => key === "p'3 100" ? 1 : 40);
  const rounds = finalistsOf(first, DECISION)
    .map((choice): Timed => ({ choice, times: keyOf(choice) === "null 0" ? [9, 9] : [10, 10] }));
  const verdict = judge(DECISION, rounds, [10, 10]);
  assertEquals([keyOf(verdict.bestOfThree), verdict.bestOfThreeMs], ["null 0", 9]);
});

Deno.test("judge finds no regret among equal choices with noise of 5 %", () => {
  const random = new RandomStream(1);
  const noisy = () => Array.from({ length: 4 }, () => 10 * (1 + 0.05 * random.normal()));
  const choices = finalistsOf(timed(coarseChoices(CANDIDATES), () => 10), DECISION);
  const regrets = Array.from({ length: 2_000 }, () => {
    const rounds = choices.map((choice): Timed => ({ choice, times: noisy() }));
    const { decided, corrected } = judge(DECISION, rounds, noisy());
    return [decided.ofAll, decided.ofThree, corrected.ofAll, corrected.ofThree]
      .map(({ share }) => share);
  });
  for (const index of [0, 1, 2, 3]) {
    assertAlmostEquals(mean(regrets.map((regret) => regret[index]!)), 0, 0.004);
  }
});

Deno.test("judge takes noise for a regret in 1 of 40 cases, however few rounds there are", () => {
  const random = new RandomStream(2);
  for (const rounds of [3, 4, 8, 12]) {
    const noisy = () => Array.from({ length: rounds }, () => 10 * (1 + 0.05 * random.normal()));
    const found = Array.from({ length: 4_000 }, () => {
      const { corrected } = judge(LOCAL, [{ choice: LOCAL, times: noisy() }], noisy());
      return corrected.ofThree.least > 0 ? 1 : 0;
    });
    assertAlmostEquals(mean(found), 0.025, 0.01);
  }
});
