/** `listFiles`: which files match, in which order, whole and by splits. */

import {
  assertEquals,
  assertInstanceOf,
  assertNotEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { UNKNOWN_CARDINALITY } from "../../../data/node.ts";
import { ListFilesNode } from "../../../data/sources/list_files.ts";
import { deserializeGraph, serializeGraph } from "../../../data/wire.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { collect, splitsOf } from "./running.ts";

const NAMES = Array.from({ length: 20 }, (_, i) => `${String(i).padStart(2, "0")}.rec`);
const FILES = { ...Object.fromEntries(NAMES.map((name) => [name, ""])), "other.txt": "" };

const sorted = (folder: string) => NAMES.map((name) => `${folder}/${name}`);

Deno.test("listFiles without shuffling gives the matching files sorted", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new ListFilesNode(`${folder}/*.rec`, { shuffle: false });
    assertEquals(await collect(node), sorted(folder));
    assertEquals(node.cardinality, UNKNOWN_CARDINALITY);
  });
});

Deno.test("listFiles accepts several patterns, and gives a file that matches two of them once", async () => {
  await withFiles(FILES, async (folder) => {
    const patterns = [`${folder}/0[5-9].rec`, `${folder}/0[0-6].rec`, `${folder}/none*`];
    const node = new ListFilesNode(patterns, { shuffle: false });
    assertEquals(await collect(node), sorted(folder).slice(0, 10));
  });
});

Deno.test("listFiles lists many patterns, a limited number concurrently", async () => {
  const local = new DenoHost();
  let open = 0, most = 0;
  const list = async (pattern: string) => {
    most = Math.max(most, ++open);
    await local.yield();
    open--;
    return [pattern.slice(0, -1)];
  };
  const host = new DenoHost({ files: { open: (path) => local.files.open(path), list } });
  const names = Array.from({ length: 100 }, (_, i) => `far/${100 + i}`);
  const node = new ListFilesNode(names.map((name) => `${name}*`), { shuffle: false });
  assertEquals(await collect(node, { host }), names);
  assertEquals(most, 16);
});

Deno.test("listFiles shuffles by default, differently in every epoch", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new ListFilesNode(`${folder}/*.rec`);
    const first = await collect(node);
    assertNotEquals(first, sorted(folder));
    assertEquals(first.toSorted(), sorted(folder));
    assertEquals(await collect(node), first);
    assertNotEquals(await collect(node, { epoch: 1 }), first);
    assertNotEquals(await collect(node, { seed: 2n }), first);
  });
});

Deno.test("listFiles with its own seed repeats its orders, whatever the iteration's seed", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new ListFilesNode(`${folder}/*.rec`, { seed: 7 });
    const first = await collect(node, { seed: 1n });
    assertEquals(await collect(node, { seed: 2n }), first);
    assertNotEquals(await collect(node, { seed: 2n, epoch: 1 }), first);
    const other = new ListFilesNode(`${folder}/*.rec`, { seed: 8 });
    assertNotEquals(await collect(other, { seed: 1n }), first);
  });
});

Deno.test("listFiles that matches nothing fails once, names the pattern, and ends", async () => {
  await withFiles({}, async (folder) => {
    const found = await collect(new ListFilesNode([`${folder}/a*`, `${folder}/b*`]));
    assertEquals(found.length, 1);
    assertInstanceOf(found[0], LeatError);
    assertEquals(found[0].code, "not_found");
    assertStringIncludes(found[0].message, `${folder}/a*`);
    assertStringIncludes(found[0].message, `${folder}/b*`);
    const node = new ListFilesNode(`${folder}/*`);
    await assertRejects(() => node.listSplits(new DenoHost(), 1), LeatError);
  });
});

Deno.test("listFiles is split file by file, in the order of names", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new ListFilesNode(`${folder}/*.rec`);
    const splits = await node.listSplits(new DenoHost(), 32);
    assertEquals(splits.length, NAMES.length);
    const chosen = [3, 0, 1, 19].map((i): [number, number] => [splits[i]!.start, splits[i]!.stop]);
    const found = await collect(node, { splits: splitsOf(...chosen) });
    const all = sorted(folder);
    assertEquals(found, [all[3], all[0], all[1], all[19]]);
  });
});

Deno.test("listFiles reports a split outside of its listing", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new ListFilesNode(`${folder}/*.rec`);
    const { start, stop } = (await node.listSplits(new DenoHost(), 1))[0]!;
    const found = await collect(node, { splits: splitsOf([start, stop], [20, 21]) });
    assertEquals(found.length, 2);
    assertInstanceOf(found[1], LeatError);
    assertEquals(found[1].code, "data_loss");
    assertStringIncludes(found[1].message, "the listing has changed");
  });
});

Deno.test("listFiles checks its arguments", () => {
  const cases: [unknown, { shuffle?: unknown; seed?: unknown }][] = [
    ["", {}],
    [7, {}],
    [["a", 7], {}],
    [undefined, {}],
    ["a", { shuffle: 1 }],
    ["a", { seed: 0.5 }],
  ];
  for (const [patterns, options] of cases) {
    const error = assertThrows(() => new ListFilesNode(patterns, options), LeatError);
    assertEquals((error as LeatError).code, "invalid_argument");
    assertStringIncludes((error as LeatError).message, "listFiles");
  }
});

Deno.test("listFiles can be serialised", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new ListFilesNode([`${folder}/*.rec`], { seed: 3n });
    const copy = deserializeGraph(serializeGraph(node), { isOwn: true });
    assertEquals(serializeGraph(copy), serializeGraph(node));
    assertEquals(await collect(copy), await collect(node));
  });
});
