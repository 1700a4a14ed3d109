/** Turns of identities: who is next, and who is forgotten. */
import { Turns } from "../../../../actors/worker/runner/turns.ts";
import { assertEquals } from "../../../assert.ts";

/** Begins a turn, and takes what was queued first. */
function take(turns: Turns<Set<string>>): string | undefined {
  const turn = turns.begin();
  if (turn === undefined) return undefined;
  const item = turn.queue.values().next().value!;
  turn.queue.delete(item);
  return item;
}

Deno.test("Turns gives a turn to the identity with the fewest, and not more than the limit", () => {
  const turns = new Turns(() => new Set<string>(), 2);
  for (const item of ["a1", "a2", "a3"]) turns.queueOf("a").add(item);
  assertEquals([take(turns), take(turns), take(turns)], ["a1", "a2", undefined]);
  for (const item of ["b1", "b2"]) turns.queueOf("b").add(item);
  assertEquals(take(turns), "b1");
  turns.end("a");
  // Both have one: the last turn of `a` began first.
  assertEquals([take(turns), take(turns), take(turns)], ["a3", "b2", undefined]);
});

Deno.test("Turns forgets an identity that has no turn and waits for none", () => {
  const turns = new Turns(() => new Set<string>());
  const queue = turns.queueOf("a");
  turns.forgetIdle("a");
  assertEquals(turns.queueOf("a") === queue, false);
  turns.queueOf("a").add("a1");
  const waiting = turns.queueOf("a");
  turns.forgetIdle("a");
  assertEquals(turns.queueOf("a") === waiting, true);
  take(turns);
  turns.forgetIdle("a");
  assertEquals(turns.queueOf("a") === waiting, true);
  turns.end("a");
  assertEquals(turns.queueOf("a") === waiting, false);
});
