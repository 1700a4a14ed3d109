/** The decision, and algorithm 1 of the FastFlow paper, held against brute force. */
import {
  type CandidateMetrics,
  decide,
  estimateOf,
  type OffloadMetrics,
  staysLocal,
} from "../../offload/decide.ts";
import { OffloadPlan } from "../../offload/plan.ts";
import { assert, assertAlmostEquals, assertEquals, assertMatch } from "../assert.ts";
import fc from "../lib/properties.ts";
import { algorithm1 } from "./lib/algorithm1.ts";

const throughput = fc.double({ min: 1, max: 1000, noNaN: true });

const metrics: fc.Arbitrary<OffloadMetrics> = fc.record({
  Gthp: throughput,
  Lthp: throughput,
  Pcycle: fc.constant(1),
  candidates: fc.array(
    fc.record({ Rthp: throughput, Ocycle: fc.double({ min: 0, max: 1.5, noNaN: true }) }),
    { maxLength: 5 },
  ).map((all) => all.map((at, i) => ({ name: `p${i}`, ...at }))),
});

/** The throughput with a share `ratio` offloaded: what the GPU, the workers, and this host allow. */
function modelled({ Gthp, Lthp }: OffloadMetrics, Rthp: number, cost: number, ratio: number) {
  return Math.min(Gthp, Rthp / ratio, Lthp / (1 - ratio + ratio * cost));
}

/** The same under the paper's model: this host prepares less by the share `cost`. */
function modelledByPaper(
  { Gthp, Lthp }: OffloadMetrics,
  Rthp: number,
  cost: number,
  ratio: number,
) {
  const local = ratio === 1 ? Infinity : Lthp * (1 - cost) / (1 - ratio);
  return Math.min(Gthp, Rthp / ratio, local);
}

/** All ratios but 0. */
const RATIOS = Array.from({ length: 1_000 }, (_, i) => (i + 1) / 1_000);

Deno.test("decide keeps everything local exactly where the paper's line 3 says so", () => {
  fc.assert(fc.property(metrics, (m) => {
    const { Gthp, Lthp } = m;
    const isLocal = Gthp <= Lthp || Gthp / Lthp < 1.1;
    assertEquals(staysLocal(m), isLocal);
    const { candidate, ratio, rule } = decide(m);
    if (isLocal) assertEquals({ candidate, ratio }, { candidate: null, ratio: 0 });
    else assert(rule === "offload" || rule === "no candidate" || rule === "no gain");
  }));
});

Deno.test("decide applies the candidate with the greatest estimate of all", () => {
  fc.assert(fc.property(metrics, (m) => {
    const { candidate } = decide(m, 1);
    if (candidate === null) return;
    const chosen = m.candidates.find(({ name }) => name === candidate)!;
    for (const other of m.candidates) assert(estimateOf(m, chosen) >= estimateOf(m, other));
    assert(estimateOf(m, chosen) >= 1.05 * m.Lthp);
  }));
});

Deno.test("decide's ratio is the best of all, and its estimate is what that gives", () => {
  const remotes = fc.record({
    remote: throughput,
    cost: fc.double({ min: 0, max: 1.5, noNaN: true }),
  });
  fc.assert(fc.property(metrics, remotes, ({ Gthp, ...m }, { remote, cost }) => {
    const local = { ...m, Gthp, Lthp: Math.min(m.Lthp, Gthp) };
    const Rthp = modelled(local, remote, cost, 1);
    const decision = decide({ ...local, candidates: [{ name: "p'2", Rthp, Ocycle: cost }] });
    const best = Math.max(local.Lthp, ...RATIOS.map((at) => modelled(local, remote, cost, at)));
    if (decision.rule !== "offload") return assert(local.Lthp * 1.1 >= best * (1 - 1e-9));
    const reached = modelled(local, remote, cost, decision.ratio);
    assert(reached >= best * (1 - 1e-9));
    // This host alone may be what bounds Rthp.
    assert(decision.estimate <= reached * (1 + 1e-9));
  }));
});

Deno.test("decide leaves to a slow host no more than it can prepare, where workers nearly suffice", () => {
  const slow = { Gthp: 40, Lthp: 1, Pcycle: 10 };
  const { ratio, estimate } = decide({
    ...slow,
    candidates: [{ name: "p'2", Rthp: 38.9, Ocycle: 0 }],
  });
  assertAlmostEquals(ratio, 38.9 / 39.9);
  assertAlmostEquals(estimate, 39.9);
});

Deno.test("algorithm 1's OffRatio is the best of all where offloading costs no local CPU time", () => {
  fc.assert(fc.property(metrics, (m) => {
    const free = { ...m, candidates: m.candidates.map((at) => ({ ...at, Ocycle: 0 })) };
    const { candidate, OffRatio } = algorithm1(free);
    if (candidate === null) return;
    const { Rthp } = free.candidates.find(({ name }) => name === candidate)!;
    const reached = modelled(free, Rthp, 0, OffRatio);
    for (const at of RATIOS) assert(reached >= modelled(free, Rthp, 0, at) * (1 - 1e-9));
  }));
});

Deno.test("algorithm 1's OffRatio loses at most Ocycle / Pcycle by the paper's own model", () => {
  fc.assert(fc.property(metrics, (m) => {
    const { candidate, OffRatio } = algorithm1(m);
    if (candidate === null) return;
    const { Rthp, Ocycle } = m.candidates.find(({ name }) => name === candidate)!;
    if (Ocycle >= 1) return;
    const reached = modelledByPaper(m, Rthp, Ocycle, OffRatio);
    for (const at of RATIOS) {
      assert(reached >= modelledByPaper(m, Rthp, Ocycle, at) * (1 - Ocycle) * (1 - 1e-9));
    }
  }));
});

Deno.test("algorithm 1 chooses by the estimate of line 7", () => {
  fc.assert(fc.property(metrics, (m) => {
    const { candidate } = algorithm1(m);
    const estimateOf = ({ Rthp, Ocycle }: CandidateMetrics) => m.Lthp * (1 - Ocycle) + Rthp;
    const chosen = m.candidates.find(({ name }) => name === candidate);
    assertEquals(chosen === undefined, staysLocal(m) || m.candidates.length === 0);
    for (const other of m.candidates) assert(!chosen || estimateOf(chosen) >= estimateOf(other));
  }));
});

Deno.test("algorithm 1 computes Upper, Lower and OffRatio as lines 8 to 13 do", () => {
  const base = { Gthp: 100, Lthp: 40, Pcycle: 10 };
  const enough = { ...base, candidates: [{ name: "p'2", Rthp: 80, Ocycle: 2 }] };
  assertEquals(algorithm1(enough), { candidate: "p'2", OffRatio: 0.8, Upper: 80, Lower: 72 });
  // Both sides have time left: 104 together, where 100 are wanted.
  assertAlmostEquals(decide(enough).ratio, 80 / 104);
  assertEquals(decide(enough).estimate, 100);
  const scarce = { ...base, candidates: [{ name: "p'2", Rthp: 60, Ocycle: 2 }] };
  assertEquals(algorithm1(scarce), { candidate: "p'2", OffRatio: 0.6, Upper: 60, Lower: 72 });
  // Both sides finish together: 40 / (1 - r + r / 5) = 60 / r = 88.
  assertAlmostEquals(decide(scarce).ratio, 60 / 88);
  assertAlmostEquals(decide(scarce).estimate, 88);
});

Deno.test("decide counts on the CPU time that this host has left, and on that of training", () => {
  const remote = { name: "p'2", Rthp: 60, Ocycle: 5 };
  const decided = (more: Partial<OffloadMetrics>) => {
    const all = { Gthp: 1_000, Lthp: 40, Pcycle: 10, candidates: [remote], ...more };
    const { ratio, estimate } = decide(all);
    return [ratio, estimate];
  };
  // An offloaded step saves half of what a local one costs.
  assertEquals(decided({}), [60 / 70, 70]);
  // This host waits for its storage: it can receive all that workers give and be as fast as before.
  assertEquals(decided({ idle: 1 }), [60 / 100, 100]);
  assertEquals(decided({ idle: 0.25 }), [60 / 80, 80]);
  // Training takes as much CPU time as preparing here: of a step, only a quarter is saved.
  assertEquals(decided({ Gcycle: 10 }), [1, 60]);
  const few = { ...remote, Rthp: 20 };
  assertEquals(decided({ Gcycle: 10, candidates: [few] }), [20 / 45, 45]);
  // Receiving is dearer than preparing: this host prepares what it can, which takes a third of its
  // time, and receives as much in the rest.
  const dear = { ...remote, Ocycle: 20 };
  const [ratio = 0, estimate = 0] = decided({ idle: 2, candidates: [dear] });
  assertAlmostEquals(estimate, 80);
  assertAlmostEquals(ratio, 0.5);
});

Deno.test("decide's ratio reaches the best of all with idle CPUs and training on them", () => {
  const world = fc.record({
    ...{ pipeline: throughput, remote: throughput },
    P: fc.double({ min: 0.1, max: 10, noNaN: true }),
    O: fc.double({ min: 0, max: 10, noNaN: true }),
    M: fc.double({ min: 0, max: 5, noNaN: true }),
    cores: fc.double({ min: 1, max: 1_000, noNaN: true }),
  });
  fc.assert(fc.property(world, ({ pipeline, remote, P, O, M, cores }) => {
    // What the pipeline, the workers, and the CPU time of this host allow.
    const reached = (r: number) =>
      Math.min(pipeline / (1 - r), remote / r, cores / ((1 - r) * P + r * O + M));
    const [Lthp, Rthp] = [reached(0), reached(1)];
    const idle = cores / (Lthp * (P + M)) - 1;
    const metrics = {
      ...{ Gthp: Infinity, Lthp, Pcycle: P, Gcycle: M, idle },
      candidates: [{ name: "p'2", Rthp, Ocycle: O }],
    };
    const { rule, ratio } = decide(metrics);
    const best = Math.max(Lthp, ...RATIOS.map(reached));
    if (rule !== "offload") return assert(Lthp * 1.06 >= best);
    // Where this host bounds Rthp, workers may have more to give.
    const isRemoteKnown = Rthp >= remote * (1 - 1e-9);
    if (isRemoteKnown) assert(reached(ratio) >= best * (1 - 1e-6), `${ratio}: ${best}`);
  }));
});

Deno.test("decide does not say how many workers suffice if more than one kept up with training", () => {
  const workersOf = (Rthp: number, workers: number) =>
    decide({
      ...{ Gthp: 100, Lthp: 40, Pcycle: 10 },
      candidates: [{ name: "p'2", Rthp, Ocycle: 9, workers }],
    }).workers;
  // Eight that give 98 together might each give 50.
  assertEquals(workersOf(98, 8), undefined);
  assertEquals(workersOf(98, 1), 1);
  // Lower is 114, but training takes no more than 100.
  assertEquals(workersOf(90, 8), Math.ceil(100 * 8 / 90));
});

Deno.test("decide counts the workers of section 9, and explain tells of them and of the order kept", () => {
  const metrics = {
    ...{ Gthp: 100, Lthp: 40, Pcycle: 10 },
    candidates: [{ name: "p'2", Rthp: 20, Ocycle: 2, workers: 2 }],
  };
  // One of the two measured workers gives 10, and Lower is 72.
  assertEquals(decide(metrics).workers, 8);
  const plan = new OffloadPlan({
    decision: decide(metrics),
    metrics,
    refused: [],
    ordered: ["window", "take"],
    source: "measured",
    ...{ planningMs: 1_500, stepMs: 10 },
  });
  assertMatch(
    plan.explain(),
    /with 8 workers \(Lower, but at most Gthp, \/ Rthp of one\); 2 workers were measured/,
  );
  assertMatch(plan.explain(), /In order: .* because `window`, `take` would give other elements/);
  assertMatch(plan.explain(), /took 1.50 s: as long as 150 steps of this training, .* 1.5 % of/);
});

Deno.test("decide offloads nothing that would make training slower", () => {
  const base = { Gthp: 100, Lthp: 40, Pcycle: 10 };
  const dear = decide({ ...base, candidates: [{ name: "p'2", Rthp: 10, Ocycle: 9 }] });
  assertEquals([dear.candidate, dear.rule], [null, "no gain"]);
  // On a host with idle cores CPU time says little: all remote was measured to be faster.
  const fast = decide({ ...base, candidates: [{ name: "p'2", Rthp: 50, Ocycle: 12 }] });
  assertEquals([fast.candidate, fast.ratio, fast.estimate], ["p'2", 50 / 90, 50]);
});

/** The first line of the explanation of what is decided by these metrics, with one candidate. */
function sentenceOf(
  { Rthp, Ocycle, ...local }: Pick<CandidateMetrics, "Rthp" | "Ocycle"> & Partial<OffloadMetrics>,
): string {
  const candidates = [{ name: "p'3", Rthp, Ocycle }];
  const metrics = { Gthp: 100, Lthp: 40, Pcycle: 10, ...local, candidates };
  const decision = decide(metrics);
  const parts = { refused: [], source: "measured", planningMs: 0 } as const;
  return new OffloadPlan({ decision, metrics, ...parts }).explain().split("\n")[0]!;
}

Deno.test("explain says why workers get their share, in each case of decide", () => {
  for (
    const [metrics, why] of [
      [{ Rthp: 98, Ocycle: 9 }, "100 %.* because workers alone are fast enough:"],
      [{ Rthp: 60, Ocycle: 8, Gcycle: 90 }, "100 %.* because workers alone are faster than"],
      [{ Lthp: 60, Rthp: 60, Ocycle: 0.1 }, "50 %.* with which .* have time left:"],
      [{ Rthp: 60, Ocycle: 2 }, "68 %.* so that workers and this host finish together:"],
      [{ Rthp: 50, Ocycle: 12 }, "56 %.* so that workers and this host finish together:"],
      [{ Rthp: 80, Ocycle: 12 }, "80 %.* as much as workers and network can give:"],
      [{ Lthp: 60, idle: 3, Rthp: 90, Ocycle: 12 }, "40 %.* the least share that makes it so fast"],
    ] as const
  ) assertMatch(sentenceOf(metrics), new RegExp(`^Workers run p'3 for ${why}`));
});

Deno.test("explain says what keeps offloading from gaining anything: workers, or receiving", () => {
  const gainless = /^Nothing is offloaded, though training could be at most 2.50 times as fast: /;
  const slow = sentenceOf({ Rthp: 1, Ocycle: 0.05 });
  assertMatch(slow, gainless);
  assertMatch(slow, /workers, or the network to them, are too slow/);
  const dear = sentenceOf({ Rthp: 35, Ocycle: 12 });
  assertMatch(dear, gainless);
  assertMatch(dear, /receiving what workers prepare costs this host more than they save/);
});
