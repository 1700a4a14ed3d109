/**
 * @module Random streams: the published vectors, independence, uniformity, and the draws held
 * fixed.
 */

import { LeatError } from "../../core/error.ts";
import { philox4x32, RandomStream } from "../../core/philox.ts";
import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertNotEquals,
  assertThrows,
} from "../assert.ts";

/** Words 0 to 2 of the stream below 1000, and the draw that words 3 and 4 make. */
const FIRST_INTS = [346, 875, 142];
const FOURTH_DRAW = 0.7554705272308557;

Deno.test("philox4x32 gives Random123's known answers for philox4x32-10", () => {
  const ones = 0xffffffff;
  assertEquals(philox4x32([0, 0, 0, 0], [0, 0]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
  assertEquals(
    philox4x32([ones, ones, ones, ones], [ones, ones]),
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  );
  assertEquals(
    philox4x32([0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344], [0xa4093822, 0x299f31d0]),
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  );
});

Deno.test("RandomStream draws do not change: recorded pipelines repeat", () => {
  const random = new RandomStream(42n, ["shuffle", 3]);
  assertEquals([random.int(1000), random.int(1000), random.int(1000)], FIRST_INTS);
  assertEquals(random.next(), FOURTH_DRAW);
});

Deno.test("RandomStream depends only on seed, labels and index", () => {
  const draws = (stream: RandomStream) => Array.from({ length: 5 }, () => stream.next());
  const root = new RandomStream(7);
  const before = draws(root.fork("a").fork(1));
  root.next();
  root.fork("b").next();
  assertEquals(draws(root.fork("a").fork(1)), before);
  assertEquals(draws(new RandomStream(7n, ["a", 1])), before);
});

Deno.test("RandomStream.seek moves to any draw, and position returns it", () => {
  const stream = new RandomStream(1);
  const words = Array.from({ length: 12 }, () => stream.int(2 ** 32));
  assertEquals(stream.position, 12);
  for (const index of [11, 0, 5, 6]) {
    stream.seek(index);
    assertEquals(stream.int(2 ** 32), words[index]);
  }
  stream.seek(2 ** 40);
  const far = stream.int(2 ** 32);
  stream.seek(2 ** 40 % 2 ** 34);
  assertNotEquals(stream.int(2 ** 32), far);
  assertThrows(() => stream.seek(-1), LeatError);
});

Deno.test("RandomStream gives different streams for different paths of labels", () => {
  const paths: (string | number)[][] = [
    [],
    [""],
    ["", ""],
    ["ab"],
    ["a", "b"],
    ["b", "a"],
    ["a\0"],
    ["a"],
    [97],
    ["abcd"],
    ["abcde"],
    [0],
    [0, 0],
    [1],
    [2 ** 32],
    [2 ** 32 + 1],
    ["1"],
  ];
  const seeds = [0n, 1n, -1n, 2n ** 32n, 2n ** 63n];
  const first = seeds.flatMap((seed) => paths.map((path) => new RandomStream(seed, path).next()));
  assertEquals(new Set(first).size, seeds.length * paths.length);
});

Deno.test("RandomStream takes a seed's low 64 bits, negative ones as two's complement", () => {
  const first = (seed: bigint | number) => new RandomStream(seed).next();
  assertEquals(first(-1), first(2n ** 64n - 1n));
  assertEquals(first(2n ** 64n + 5n), first(5));
  for (const seed of [0.5, NaN, 2 ** 53]) assertThrows(() => new RandomStream(seed), LeatError);
  assertThrows(() => new RandomStream(1, [-1]), LeatError);
  assertThrows(() => new RandomStream(1).fork(0.5), LeatError);
});

Deno.test("RandomStream.int is uniform, also where n does not divide the range", () => {
  const random = new RandomStream(3, ["int"]);
  const counts = new Array(7).fill(0);
  for (let i = 0; i < 70_000; i++) counts[random.int(7)]++;
  // Chi-squared of 6 degrees of freedom: beyond 30 once in 25,000 seeds, and this seed is fixed.
  const chi = counts.reduce((sum, count) => sum + (count - 10_000) ** 2 / 10_000, 0);
  assert(chi < 30, `chi-squared ${chi} of ${counts}`);
  // A plain remainder of 32 bits would put two thirds of the draws below n / 2.
  const wide = 3 * 2 ** 30;
  let low = 0;
  for (let i = 0; i < 10_000; i++) low += random.int(wide) < wide / 2 ? 1 : 0;
  assertAlmostEquals(low / 10_000, 0.5, 0.03);
  for (const n of [1, 2 ** 32, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
    const draw = random.int(n);
    assert(Number.isInteger(draw) && draw >= 0 && draw < n);
  }
  for (const n of [0, -1, 1.5, 2 ** 53, Infinity]) assertThrows(() => random.int(n), LeatError);
});

Deno.test("RandomStream.next and normal have the moments they should", () => {
  const random = new RandomStream(4, ["moments"]);
  let [sum, squares, normals, normalSquares] = [0, 0, 0, 0];
  const draws = 50_000;
  for (let i = 0; i < draws; i++) {
    const uniform = random.next();
    assert(uniform >= 0 && uniform < 1);
    const normal = random.normal();
    sum += uniform;
    squares += uniform ** 2;
    normals += normal;
    normalSquares += normal ** 2;
  }
  assertAlmostEquals(sum / draws, 1 / 2, 0.01);
  assertAlmostEquals(squares / draws, 1 / 3, 0.01);
  assertAlmostEquals(normals / draws, 0, 0.02);
  assertAlmostEquals(normalSquares / draws, 1, 0.03);
});
