/** The rounds of a scheduler: the work per consumer must not grow with their number. */
import { ConsumerSet } from "../../../actors/coordinated/consumer_set.ts";
import { CONFIRMATIONS_MAX, Rounds } from "../../../actors/coordinated/rounds.ts";
import { LeatError } from "../../../core/error.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";

/** Counts visits. */
class WatchedSet<T> extends Set<T> {
  looks = 0;

  override *[Symbol.iterator](): SetIterator<T> {
    for (const item of super.values()) {
      this.looks++;
      yield item;
    }
  }
}

Deno.test("Rounds.confirm answers all when the last holds a round, without a look at each before", async () => {
  const CONSUMERS = 100;
  const rounds = new Rounds(CONSUMERS);
  const round = rounds.add(0, Promise.resolve());
  const groups = new WatchedSet<never>();
  Object.assign(round, { groups });
  const heard: number[] = [];
  for (let index = 0; index < CONSUMERS - 1; index++) {
    rounds.confirm(round, index, [])!.then(() => heard.push(index));
  }
  await Promise.resolve();
  assertEquals(heard.length, 0);
  assertEquals(rounds.confirm(round, CONSUMERS - 1, []), undefined);
  await Promise.resolve();
  assertEquals(heard.length, CONSUMERS - 1);
  // Each confirmation looks at the one group that all are in, and finds its own group.
  assert(groups.looks <= 2 * CONSUMERS, `${groups.looks} looks`);
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

Deno.test("Rounds.confirm refuses one confirmation more than are kept, and holds its part", () => {
  const CONSUMERS = 65_536;
  const rounds = new Rounds(CONSUMERS);
  const confirm = (number: number, index: number) => {
    const round = rounds.get(number) ?? rounds.add(number, Promise.resolve());
    const waiting = rounds.confirm(round, index, []);
    waiting?.catch(() => {});
    return waiting !== undefined;
  };
  let kept = 0;
  const refused = assertThrows(() => {
    for (let number = 0; number < 64; number++) {
      for (let index = 1; index < CONSUMERS; index++) if (confirm(number, index)) kept++;
    }
  }, LeatError);
  assertEquals([refused.code, kept], ["resource_exhausted", CONFIRMATIONS_MAX]);
  // When the last consumer holds a round, those that waited for it make room.
  assert(!confirm(0, 0));
  assert(confirm(2, 3));
});

Deno.test("Rounds.forget frees what the confirmations of a round took", () => {
  const rounds = new Rounds(4);
  const round = rounds.add(0, Promise.resolve());
  rounds.confirm(round, 0, [])!.catch(() => {});
  rounds.confirm(round, 1, [2])!.catch(() => {});
  assert(rounds.absentBytes > 0);
  rounds.forget(0);
  assertEquals(rounds.absentBytes, 0);
});

Deno.test("ConsumerSet counts its consumers, and those in either of two sets", () => {
  const [one, other, same] = [70, 70, 70].map((count) => new ConsumerSet(count));
  for (const index of [0, 31, 32, 69]) one!.add(index);
  for (const index of [31, 63]) other!.add(index);
  for (const index of [69, 32, 31, 0]) same!.add(index);
  assertEquals([one!.add(31), one!.size, one!.has(31), one!.has(63)], [false, 4, true, false]);
  assertEquals([one!.sizeWith(other!), one!.equals(same!), one!.equals(other!)], [5, true, false]);
});
