/** Which pipelines a Python program may divide or continue by number. */
import { keepsOrder, sameOnRanks } from "../../../cli/python/order.ts";
import { LeatError } from "../../../core/error.ts";
import { inPreOrder } from "../../../data/node.ts";
import { OffloadNode } from "../../../data/operators/offload.ts";
import { Dataset, type OffloadChoice, OffloadPlan } from "../../../mod.ts";
import { assert, assertEquals, assertThrows } from "../../assert.ts";

const service = "ws://127.0.0.1:1";
const source = Dataset.range(10);
const plan = { candidate: "p'2", ratio: 0.5 };
const measured: OffloadChoice = Object.create(OffloadPlan.prototype, {
  candidate: { value: plan.candidate },
  ratio: { value: plan.ratio },
});
const disordered = source.map((x) => x, { numParallelCalls: 2, deterministic: false });

/** Pipelines, whether they keep their order, and whether they can be made to keep it for ranks. */
const pipelines: Record<string, readonly [Dataset<unknown>, boolean, boolean]> = {
  "calls in order": [source.map((x) => x, { numParallelCalls: 2 }), true, true],
  "calls that may overtake": [disordered.batch(2), false, true],
  "operators that may overtake": [source.withOptions({ deterministic: false }), false, true],
  "stored calls that may overtake": [disordered.cache("stored"), true, true],
  "offload without a plan": [source.offload({ service, deterministic: true }), false, false],
  "offload with a measured plan": [
    source.offload({ service, deterministic: true, plan: measured }),
    false,
    false,
  ],
  "offload that may reorder": [source.offload({ service, plan }), false, false],
  "offload of calls that may overtake": [
    disordered.offload({ service, plan, deterministic: true }),
    false,
    false,
  ],
  "offload in order": [source.offload({ service, plan, deterministic: true }), true, true],
  "a stream of a service": [
    disordered.distribute({ service, processingMode: "DETERMINISTIC" }),
    true,
    true,
  ],
  "a named stream of a service": [
    source.distribute({ service, processingMode: "DETERMINISTIC", jobName: "a" }),
    true,
    false,
  ],
};

for (const [name, [{ node }, isOrdered, isDivisible]] of Object.entries(pipelines)) {
  Deno.test(`keepsOrder knows whether a number of elements is a position: ${name}`, () => {
    assertEquals(keepsOrder(node), isOrdered);
  });

  Deno.test(`sameOnRanks fixes the order, or refuses a service that has none: ${name}`, () => {
    if (isDivisible) return assert(keepsOrder(sameOnRanks(node)));
    const kind = node instanceof OffloadNode
      ? "give offload deterministic: true and a plan"
      : "distribute with";
    const error = assertThrows(() => sameOnRanks(node), LeatError, kind);
    assertEquals(error.code, "failed_precondition");
  });
}

Deno.test("sameOnRanks keeps the token of a service, which attributes lack", () => {
  const token = "secret";
  for (
    const served of [
      source.offload({ service, token, plan, deterministic: true }),
      disordered.distribute({ service, token, processingMode: "DETERMINISTIC" }),
    ]
  ) {
    const { node } = served.withOptions({ deterministic: false });
    assert(inPreOrder(sameOnRanks(node)).includes(served.node));
  }
});
