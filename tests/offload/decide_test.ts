/** Algorithm 1 of the FastFlow paper, held against brute force under the paper's own model. */
import fc from "fast-check";
import { decide, estimateOf, type OffloadMetrics, staysLocal } from "../../offload/decide.ts";
import { OffloadPlan } from "../../offload/plan.ts";
import { assert, assertAlmostEquals, assertEquals, assertMatch } from "../assert.ts";

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

/**
 * The training throughput under the paper's model with a share `ratio` offloaded: what the GPU, the
 * remote side, and the local side with its overhead allow.
 */
function modelled({ Gthp, Lthp }: OffloadMetrics, Rthp: number, cost: number, ratio: number) {
  const remote = ratio === 0 ? Infinity : Rthp / ratio;
  const local = ratio === 1 ? Infinity : Lthp * (1 - (ratio === 0 ? 0 : cost)) / (1 - ratio);
  return Math.min(Gthp, remote, local);
}

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
    assert(estimateOf(m, chosen) > m.Lthp);
  }));
});

Deno.test("decide's ratio is the best of all where offloading costs no local CPU time", () => {
  fc.assert(fc.property(metrics, (m) => {
    const free = { ...m, candidates: m.candidates.map((at) => ({ ...at, Ocycle: 0 })) };
    const { candidate, ratio } = decide(free);
    if (candidate === null) return;
    const { Rthp } = free.candidates.find(({ name }) => name === candidate)!;
    const reached = modelled(free, Rthp, 0, ratio);
    for (let at = 0; at <= 1000; at++) {
      assert(reached >= modelled(free, Rthp, 0, at / 1000) * (1 - 1e-9));
    }
  }));
});

Deno.test("decide's ratio loses at most the local overhead, Ocycle / Pcycle, where there is some", () => {
  fc.assert(fc.property(metrics, (m) => {
    const { candidate, ratio } = decide(m);
    if (candidate === null) return;
    const { Rthp, Ocycle } = m.candidates.find(({ name }) => name === candidate)!;
    if (Ocycle >= 1) return;
    const reached = modelled(m, Rthp, Ocycle, ratio);
    for (let at = 1; at <= 1000; at++) {
      assert(reached >= modelled(m, Rthp, Ocycle, at / 1000) * (1 - Ocycle) * (1 - 1e-9));
    }
  }));
});

Deno.test("decide computes Upper, Lower and OffRatio as lines 8 to 13 do", () => {
  const base = { Gthp: 100, Lthp: 40, Pcycle: 10 };
  const enough = decide({ ...base, candidates: [{ name: "p'2", Rthp: 80, Ocycle: 2 }] });
  assertEquals([enough.Upper, enough.Lower], [80, 72]);
  assertAlmostEquals(enough.ratio, 0.8);
  const scarce = decide({ ...base, candidates: [{ name: "p'2", Rthp: 60, Ocycle: 2 }] });
  assertEquals([scarce.Upper, scarce.Lower], [60, 72]);
  assertAlmostEquals(scarce.ratio, 0.6);
  assertAlmostEquals(scarce.estimate, 40 * 0.8 + 60);
  // Both sides finish together: 40 / (1 - r + r / 5) = 60 / r, and with enough workers as line 11 says.
  assertAlmostEquals(scarce.startRatio, 60 / 88);
  assertAlmostEquals(enough.startRatio, 0.8);
  // Section 9: one of the two measured workers gives 10, and 72 are needed.
  const metrics = { ...base, candidates: [{ name: "p'2", Rthp: 20, Ocycle: 2, workers: 2 }] };
  assertEquals(decide(metrics).workers, 8);
  const plan = new OffloadPlan({
    decision: decide(metrics),
    metrics,
    refused: [],
    source: "measured",
    ...{ planningMs: 1_500, stepMs: 10 },
  });
  assertMatch(plan.explain(), /with 8 workers \(Lower \/ Rthp of one\); 2 workers were measured/);
  assertMatch(plan.explain(), /took 1.50 s: as long as 150 steps of this training, .* 1.5 % of/);
});

Deno.test("decide offloads nothing that would make training slower", () => {
  const base = { Gthp: 100, Lthp: 40, Pcycle: 10 };
  const dear = decide({ ...base, candidates: [{ name: "p'2", Rthp: 10, Ocycle: 9 }] });
  assertEquals([dear.candidate, dear.rule], [null, "no gain"]);
});
