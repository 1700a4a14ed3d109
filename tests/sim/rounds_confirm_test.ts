/**
 * A consumer whose confirmations are refused for a while retries at intervals, not in a tight loop.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { LeatError } from "../../core/error.ts";
import { tampered } from "../../sim/mutants/mutant.ts";
import { NO_FAULTS } from "../../sim/faults/options.ts";
import { runRounds } from "../../sim/workloads/workload_rounds.ts";
import { assert, assertEquals } from "../assert.ts";

/** Number of refused confirmations. */
const REFUSED = 20;

Deno.test("a consumer whose confirmation is refused as cancelled pauses before it asks again", async () => {
  let refused = 0;
  const confirms = new Set<string>();
  const keyOf = (node: string, id: number) => `${node} ${id}`;
  const refuse = (envelope: Envelope): Envelope => {
    if (envelope.kind === "ask" && envelope.method === "confirm") {
      confirms.add(keyOf(envelope.source.node, envelope.id));
    }
    if (envelope.kind !== "reply" || refused === REFUSED) return envelope;
    if (!confirms.has(keyOf(envelope.target.node, envelope.id))) return envelope;
    refused++;
    const { body: _, ...address } = envelope;
    const error = new LeatError("cancelled", "It is going").toWire();
    return { ...address, kind: "failure", error };
  };
  using _ = tampered(refuse);
  const { violations, cluster } = await runRounds({ seed: 1n, faults: NO_FAULTS, readable: true });
  assertEquals(violations, []);
  assertEquals(refused, REFUSED);
  const refusedAtMs = cluster.trace.lines.filter((line) => / delivered .*It is going/.test(line))
    .map((line) => parseFloat(line));
  const tookMs = refusedAtMs.at(-1)! - refusedAtMs[0]!;
  assert(tookMs > 50, `virtual time: ${refusedAtMs.length} refusals in ${tookMs} ms`);
});
