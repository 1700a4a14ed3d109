/** What is remembered for owners: the newest, up to a number of bytes of each and of all. */
import { Remembered } from "../../../../actors/dispatcher/state/remembered.ts";
import { assertEquals } from "../../../assert.ts";

const ownerOf = ([owner]: string) => owner!;
const keysOf = (those: Remembered<number>) => [...those].map(([key]) => key);

Deno.test("Remembered drops an owner's oldest beyond its bytes, and nothing of others", () => {
  const those = new Remembered<number>(ownerOf, { ownerBytes: 30, allBytes: 1_000 });
  those.set("a1", 1, 10);
  for (let i = 0; i < 5; i++) those.set(`b${i}`, i, 10);
  assertEquals(keysOf(those), ["a1", "b2", "b3", "b4"]);
  // Set again, it is the newest.
  those.set("b2", 7, 10);
  those.set("b5", 5, 10);
  assertEquals(keysOf(those), ["a1", "b4", "b2", "b5"]);
  assertEquals([those.get("b2"), those.get("b0"), those.bytesOf("b2")], [7, undefined, 10]);
  those.grow("b5", 15);
  assertEquals(keysOf(those), ["a1", "b5"]);
  those.grow("b5", 15);
  assertEquals(keysOf(those), ["a1"]);
});

Deno.test("Remembered drops the oldest of the owner with the most when all have too much", () => {
  const those = new Remembered<number>(ownerOf, { ownerBytes: 30, allBytes: 50 });
  those.set("a1", 1, 10);
  for (const key of ["b1", "b2", "c1", "b3"]) those.set(key, 0, 10);
  those.set("c2", 0, 10);
  assertEquals(keysOf(those), ["a1", "b2", "b3", "c1", "c2"]);
});
