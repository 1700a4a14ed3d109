/** The rounds of a scheduler, whose work for each consumer is not to grow with their number. */
import { Rounds } from "../../../actors/reads/rounds.ts";
import { assert, assertEquals } from "../../assert.ts";

/** Counts what is come by. */
class WatchedSet<T> extends Set<T> {
  looks = 0;

  override *[Symbol.iterator](): SetIterator<T> {
    for (const item of super.values()) {
      this.looks++;
      yield item;
    }
  }
}

Deno.test("Rounds.confirm: all hear when the last holds a round, and each is looked at once, however many they are", async () => {
  const CONSUMERS = 100;
  const rounds = new Rounds(CONSUMERS);
  const round = rounds.add(0, Promise.resolve());
  const waiting = new WatchedSet<never>();
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

Deno.test("Rounds.confirm: who knows of absent consumers hears without them, and the others do not", async () => {
  const rounds = new Rounds(4);
  const round = rounds.add(0, Promise.resolve());
  const heard: number[] = [];
  for (const [index, absent] of [[0, []], [1, [3]]] as const) {
    rounds.confirm(round, index, absent)!.then(() => heard.push(index));
  }
  rounds.confirm(round, 2, [])?.then(() => heard.push(2));
  await Promise.resolve();
  assertEquals(heard, [1]);
  assertEquals(rounds.confirm(round, 2, [3]), undefined);
});
