/** The rounds of a scheduler: the work per consumer must not grow with their number. */
import { Rounds } from "../../../actors/coordinated/rounds.ts";
import { LeatError } from "../../../core/error.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";

/** Counts visits. */
class WatchedMap<K, V> extends Map<K, V> {
  looks = 0;

  override *[Symbol.iterator](): MapIterator<[K, V]> {
    for (const entry of super.entries()) {
      this.looks++;
      yield entry;
    }
  }
}

Deno.test("Rounds.confirm answers all when the last holds a round, visiting each once", async () => {
  const CONSUMERS = 100;
  const rounds = new Rounds(CONSUMERS);
  const round = rounds.add(0, Promise.resolve());
  const waiting = new WatchedMap<never, never>();
  Object.assign(round, { waiting });
  const heard: number[] = [];
  for (let index = 0; index < CONSUMERS - 1; index++) {
    rounds.confirm(round, index, [])!.then(() => heard.push(index));
  }
  await Promise.resolve();
  assertEquals(heard.length, 0);
  assertEquals(rounds.confirm(round, CONSUMERS - 1, []), undefined);
  await Promise.resolve();
  assertEquals(heard.length, CONSUMERS - 1);
  assert(waiting.looks <= CONSUMERS, `${waiting.looks} looks`);
});

Deno.test("Rounds.confirm answers those that know of absent consumers without them, and no others", async () => {
  const rounds = new Rounds(4);
  const round = rounds.add(0, Promise.resolve());
  const heard: number[] = [];
  for (const [index, absent] of [[0, []], [1, [3]]] as const) {
    rounds.confirm(round, index, absent)!.then(() => heard.push(index));
  }
  const before = rounds.confirm(round, 2, [])!;
  await Promise.resolve();
  assertEquals(heard, [1]);
  assertEquals(rounds.confirm(round, 2, [3]), undefined);
  await assertRejects(
    () => before,
    LeatError,
    "Consumer 2 has confirmed again that it holds round 0",
  );
});

Deno.test("Rounds.confirm keeps only the last of a consumer's repeated confirmations", async () => {
  const rounds = new Rounds(2);
  const round = rounds.add(7, Promise.resolve());
  const ends: string[] = [];
  for (let i = 0; i < 100; i++) {
    rounds.confirm(round, 0, [])!.then(() => ends.push("held"), (error) => ends.push(error.code));
  }
  await Promise.resolve();
  assertEquals(ends, Array(99).fill("cancelled"));
  assertEquals(rounds.confirm(round, 1, []), undefined);
  await Promise.resolve();
  assertEquals(ends.at(-1), "held");
});

Deno.test("Rounds.forget refuses the confirmations that wait for a forgotten round", async () => {
  const rounds = new Rounds(2);
  const round = rounds.add(0, Promise.resolve());
  const waiting = rounds.confirm(round, 0, [])!;
  rounds.forget(0);
  const error = await assertRejects(() => waiting, LeatError, "Round 0 is over");
  assertEquals(error.code, "failed_precondition");
});
