/** Sets of places in a stream: they are those sets, and take no more memory than what they list. */
import * as places from "../../../../actors/dispatcher/modes/deterministic/places.ts";
import { assert, assertEquals } from "../../../assert.ts";
import fc from "../../../lib/properties.ts";

const STOP = 60;
const ascending = (set: ReadonlySet<number>) => [...set].sort((a, b) => a - b);

/** A set and its places, some of which are ranges. */
const SETS = fc.array(fc.tuple(fc.nat(STOP - 1), fc.nat(25)), { maxLength: 5 }).map((ranges) => {
  const set = new Set<number>();
  let those: places.Places = [];
  for (const [from, length] of ranges) {
    for (let at = from; at < from + length; at++) set.add(at);
    those = places.union(those, places.between(from, from + length));
  }
  return { set, those };
});

Deno.test("places are united, intersected, taken away, found and counted as the sets they stand for", () => {
  fc.assert(
    fc.property(SETS, SETS, (a, b) => {
      const both = [
        [places.union(a.those, b.those), a.set.union(b.set)],
        [places.common(a.those, b.those), a.set.intersection(b.set)],
        [places.without(a.those, b.those), a.set.difference(b.set)],
      ] as const;
      for (const [those, set] of both) {
        assertEquals(places.listed(those), ascending(set));
        assertEquals(places.count(those), set.size);
        assertEquals(places.lowest(those), ascending(set)[0]);
        for (let at = 0; at < STOP + 30; at++) assertEquals(places.has(those, at), set.has(at));
      }
      // Equal sets are equal data, whatever they came from.
      assertEquals(places.union(a.those, ascending(a.set)), places.union(ascending(a.set), []));
    }),
  );
});

Deno.test("places in a row take one entry, however many there are", () => {
  const far = 2 ** 24;
  assertEquals(places.without(places.between(0, far), [7]), [0, 1, 2, 3, 4, 5, 6, [8, far]]);
  assert(places.has([[8, far]], far - 1) && !places.has([[8, far]], far));
  assertEquals(places.between(5, 5), []);
});
