/** Trees: walking, zipping, paths and sizes. */

import { LeatError } from "../../core/error.ts";
import { RaggedTensor, Tensor, tensor } from "../../core/tensor.ts";
import {
  byteSize,
  flattenTree,
  isLeaf,
  mapTree,
  sharesMemory,
  TREE_DEPTH_MAX,
  treePaths,
  zipTrees,
} from "../../core/tree.ts";
import { assertEquals, assertStrictEquals, assertThrows } from "../assert.ts";

const RAGGED = new RaggedTensor(tensor([1]), new BigInt64Array([0n, 1n]));
const TREE = { b: [1, { "odd key": "x" }], a: new Uint8Array(2), e: [], n: null, r: RAGGED };

function refused(fn: () => unknown, part: string): void {
  const error = assertThrows(fn, LeatError, part) as LeatError;
  assertEquals(error.code, "invalid_argument");
}

Deno.test("flattenTree and treePaths go depth first in the order of the keys", () => {
  assertEquals(flattenTree(TREE), [1, "x", TREE.a, null, RAGGED]);
  assertEquals(treePaths(TREE), ["$.b[0]", '$.b[1]["odd key"]', "$.a", "$.n", "$.r"]);
  assertEquals(treePaths(5), ["$"]);
});

Deno.test("isLeaf accepts scalars, typed arrays and tensors, but nothing with structure or behaviour", () => {
  for (const leaf of [0, 1n, false, "", null, new Float16Array(1), tensor(1), RAGGED]) {
    assertEquals(isLeaf(leaf), true);
  }
  for (const other of [[], {}, undefined, () => 1, new Map(), new Date(0), Symbol("s")]) {
    assertEquals(isLeaf(other), false);
  }
});

Deno.test("mapTree keeps structure and the order of keys, and leaves the tree alone", () => {
  const doubled = mapTree({ z: 1, a: [2, { q: 3 }] }, (leaf) => (leaf as number) * 2);
  assertEquals(JSON.stringify(doubled), '{"z":2,"a":[4,{"q":6}]}');
  assertStrictEquals((mapTree(TREE, (leaf) => leaf) as typeof TREE).a, TREE.a);
});

Deno.test("mapTree calls may nest: fn may itself walk a tree", () => {
  const tags = mapTree({ a: 1, b: 2 }, (leaf) => mapTree([leaf], (inner) => `${inner}`));
  assertEquals(tags, { a: ["1"], b: ["2"] });
});

Deno.test("zipTrees combines the leaves of one path", () => {
  const sums = zipTrees(
    [{ a: 1, b: [2] }, { b: [20], a: 10 }, { a: 100, b: [200] }],
    (leaves) => (leaves as number[]).reduce((a, b) => a + b),
  );
  assertEquals(JSON.stringify(sums), '{"a":111,"b":[222]}');
});

Deno.test("zipTrees names the path and the element where structures differ", () => {
  const leaf = () => 0;
  refused(
    () => zipTrees([{ a: [1] }, { a: [1] }, { a: [1, 2] }], leaf),
    "0 and 2 differ in structure at $.a",
  );
  refused(() => zipTrees([{ a: 1 }, { b: 1 }], leaf), "{a} and an object of {b}");
  refused(() => zipTrees([{ a: 1 }, { a: { c: 1 } }], leaf), "$.a");
  refused(() => zipTrees([{ a: 1 }, { a: undefined }], leaf), "$.a");
  refused(() => zipTrees([[1], { 0: 1 }], leaf), "$");
  refused(() => zipTrees([{ toString: 1 }, {}], leaf), "$");
  refused(() => zipTrees([], leaf), "at least one");
});

Deno.test("walks refuse values that elements cannot hold, naming the path", () => {
  const circular: unknown[] = [];
  circular.push(circular);
  const proto = JSON.parse('{"a":{"__proto__":1}}');
  for (const walk of [flattenTree, (tree: unknown) => mapTree(tree, () => 0)]) {
    refused(() => walk({ a: [undefined] }), "undefined at $.a[0]");
    refused(() => walk([{ m: new Map() }]), "Map at $[0].m");
    refused(() => walk([(function* () {})()]), "Generator at $[0]");
    refused(() => walk({ f: () => 1 }), "$.f");
    refused(() => walk(proto), "$.a.__proto__");
    refused(() => walk(circular), `${TREE_DEPTH_MAX} levels`);
  }
});

Deno.test("sharesMemory finds objects and buffers that two trees have, in tensors and views too", () => {
  const row = tensor([1, 2]);
  assertEquals(sharesMemory({ a: row }, [row]), true);
  assertEquals(sharesMemory(new Tensor("int32", [2], new Int32Array(2)), TREE), false);
  const bytes = new Uint8Array(4);
  assertEquals(sharesMemory(new Tensor("uint8", [2], bytes.subarray(0, 2)), [bytes]), true);
  assertEquals(sharesMemory(1, [1]), false);
});

Deno.test("sharesMemory ends for structure with many cycles and for long chains", () => {
  interface Linked {
    next?: Linked;
    before?: Linked;
  }
  const first: Linked = {};
  let last = first;
  for (let i = 0; i < 100_000; i++) last = last.next = { before: last };
  last.next = first;
  assertEquals(sharesMemory({ x: 1 }, first), false);
  assertEquals(sharesMemory(last, first), true);
});

Deno.test("byteSize adds up leaves and places, and is never 0 for structure", () => {
  assertEquals(byteSize(1), 8);
  assertEquals(byteSize([1, 2n, true, "abc", null]), 8 + 8 + 1 + 3 + 1 + 5 * 8);
  assertEquals(byteSize({ t: tensor(new Float32Array(256)) }), 1024 + 8);
  assertEquals(byteSize({ r: RAGGED }), RAGGED.byteLength + 8);
});
