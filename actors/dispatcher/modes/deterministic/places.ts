/** Sets of positions in a stream. A long run of positions takes no more memory than a short one. */

/** Positions and ranges of positions, ascending. A range excludes its `stop`. */
export type Places = readonly (number | PlaceRange)[];

type PlaceRange = readonly [from: number, stop: number];

/** Shorter runs are listed one by one, which takes less memory than a range. */
const RANGE_MIN = 9;

export function union(a: Places, b: Places): Places {
  return combine(a, b, (inA, inB) => inA || inB);
}

export function common(a: Places, b: Places): Places {
  return combine(a, b, (inA, inB) => inA && inB);
}

export function without(a: Places, b: Places): Places {
  return combine(a, b, (inA, inB) => inA && !inB);
}

/** The positions from `from` up to but not including `stop`. */
export function between(from: number, stop: number): Places {
  return from < stop ? placesOf([from, stop]) : [];
}

export function has(places: Places, place: number): boolean {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (stopOf(places[middle]!) <= place) low = middle + 1;
    else high = middle;
  }
  const found = places[low];
  return found !== undefined && fromOf(found) <= place;
}

export function lowest([first]: Places): number | undefined {
  return first === undefined ? undefined : fromOf(first);
}

export function count(places: Places): number {
  return places.reduce<number>((sum, each) => sum + stopOf(each) - fromOf(each), 0);
}

/** The positions one by one. */
export function listed(places: Places): number[] {
  return places.flatMap((each) =>
    typeof each === "number"
      ? [each]
      : Array.from({ length: each[1] - each[0] }, (_, i) => each[0] + i)
  );
}

function fromOf(each: Places[number]): number {
  return typeof each === "number" ? each : each[0];
}

function stopOf(each: Places[number]): number {
  return typeof each === "number" ? each + 1 : each[1];
}

/** The positions for which `isIn` is true. It must be false for positions in neither set. */
function combine(a: Places, b: Places, isIn: (inA: boolean, inB: boolean) => boolean): Places {
  const [ofA, ofB] = [boundsOf(a), boundsOf(b)];
  const bounds: number[] = [];
  let [i, j] = [0, 0];
  while (i < ofA.length || j < ofB.length) {
    const at = Math.min(ofA[i] ?? Infinity, ofB[j] ?? Infinity);
    while (ofA[i] === at) i++;
    while (ofB[j] === at) j++;
    // After an odd number of bounds, `at` is inside a range.
    const isInside = isIn(i % 2 === 1, j % 2 === 1);
    if (isInside !== (bounds.length % 2 === 1)) bounds.push(at);
  }
  return placesOf(bounds);
}

/** Where each range starts and stops. */
function boundsOf(places: Places): number[] {
  const bounds: number[] = [];
  for (const each of places) bounds.push(fromOf(each), stopOf(each));
  return bounds;
}

function placesOf(bounds: readonly number[]): Places {
  const places: (number | PlaceRange)[] = [];
  for (let i = 0; i < bounds.length; i += 2) {
    const [from, stop] = [bounds[i]!, bounds[i + 1]!];
    if (stop - from >= RANGE_MIN) places.push([from, stop]);
    else for (let at = from; at < stop; at++) places.push(at);
  }
  return places;
}
