/** Sources of rows over real files: parquet, arrow, npy and npz as users call them. */

import { tableFromArrays, tableToIPC } from "apache-arrow";
import { Uint8ArrayReader, Uint8ArrayWriter, ZipWriter } from "@zip.js/zip.js";
import { parquetWriteBuffer } from "hyparquet-writer";
import {
  assertEquals,
  assertLess,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import { type Tensor, tensor } from "../../../core/tensor.ts";
import { Dataset, type ElementSpec, TensorSpec } from "../../../data/mod.ts";
import type { DatasetNode } from "../../../data/node.ts";
import { listSplitTable } from "../../../data/sharding/splits.ts";
import { NpyNode } from "../../../data/sources/npy.ts";
import { NpzNode } from "../../../data/sources/npz.ts";
import { ParquetNode } from "../../../data/sources/parquet.ts";
import type { RowFileNode } from "../../../data/sources/row_files.ts";
import { DenoHost } from "../../../platform/deno_host.ts";
import { JUMP_RANGE_BYTES } from "../../../platform/storage/far_file.ts";
import { npyBytes } from "../formats/npy_bytes.ts";
import { collect as collectPlain, collectWithErrors } from "../lib/collect.ts";
import { RangeServer } from "../../platform/storage/range_server.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { collect, splitsOf } from "./running.ts";

const numbers = (start: number, count: number) =>
  Array.from({ length: count }, (_, i) => start + i);

async function archive(files: Record<string, Uint8Array>): Promise<Uint8Array> {
  const writer = new ZipWriter(new Uint8ArrayWriter(), { useWebWorkers: false, level: 0 });
  for (const [name, bytes] of Object.entries(files)) {
    await writer.add(name, new Uint8ArrayReader(bytes));
  }
  return await writer.close();
}

/** Files of `count` rows whose `x` counts from `start`. */
async function filesOf(start: number, count: number): Promise<Record<string, Uint8Array>> {
  const x = numbers(start, count);
  const npy = npyBytes("<f8", [count], Float64Array.from(x));
  const columnData = [
    { name: "x", type: "DOUBLE" as const, data: x },
    { name: "name", type: "STRING" as const, data: x.map((i) => `row ${i}`) },
  ];
  const table = tableFromArrays({ x: Float64Array.from(x), name: x.map((i) => `row ${i}`) });
  return {
    parquet: new Uint8Array(parquetWriteBuffer({ columnData, rowGroupSize: 4 })),
    arrow: tableToIPC(table, "file"),
    npy,
    npz: await archive({ "x.npy": npy }),
  };
}

/**
 * Runs `fn` with two real files of each kind, with spaces in their names, and datasets of their
 * `x`.
 */
async function withDatasets(
  fn: (datasets: Record<string, Dataset<unknown>>, folder: string) => Promise<void>,
): Promise<void> {
  const files: Record<string, Uint8Array> = {};
  for (const [name, start] of [["part one", 0], ["part two", 10]] as const) {
    for (const [kind, bytes] of Object.entries(await filesOf(start, 10))) {
      files[`${name}.${kind}`] = bytes;
    }
  }
  await withFiles(files, async (folder) => {
    const paths = (kind: string) =>
      ["part one", "part two"].map((name) => `${folder}/${name}.${kind}`);
    const columns = ["x"];
    await fn({
      parquet: Dataset.parquet(paths("parquet"), { columns }),
      arrow: Dataset.arrow(paths("arrow"), { columns }),
      npy: Dataset.npy<number>(paths("npy")).map((x) => ({ x })),
      npz: Dataset.npz(paths("npz"), { columns }),
    }, folder);
  });
}

const ROWS = numbers(0, 20).map((x) => ({ x }));

Deno.test("row files are read one after the other, and in round-robin order by numParallelReads", async () => {
  await withDatasets(async (datasets, folder) => {
    for (const [kind, dataset] of Object.entries(datasets)) {
      assertEquals(await collectPlain(dataset), ROWS, kind);
    }
    const files = ["part one", "part two"].map((name) => `${folder}/${name}.npz`);
    const inTurn = Dataset.npz(files, { numParallelReads: 2 });
    const expected = numbers(0, 10).flatMap((x) => [{ x }, { x: x + 10 }]);
    assertEquals(await collectPlain(inTurn), expected);
  });
});

Deno.test("row files give the same after serialising and deserialising", async () => {
  await withDatasets(async (datasets) => {
    for (const [kind, dataset] of Object.entries(datasets)) {
      const again = Dataset.deserialize(dataset.serialize(), { trustPipeline: true });
      assertEquals(await collectPlain(again), ROWS, kind);
      assertEquals(again.fingerprint(), dataset.fingerprint());
    }
  });
});

Deno.test("row files divide into parts that can be read independently", async () => {
  const host = new DenoHost();
  await withDatasets(async (_, folder) => {
    const paths = ["part one", "part two"].map((name) => `${folder}/${name}.parquet`);
    const node = new ParquetNode(paths, { columns: ["x"], partBytes: 1 });
    const table = await listSplitTable(node, host);
    assertEquals(table.map((splits) => splits.length), [6]);
    const runs = table[0]!.map(({ start, stop }) => [start, stop] as [number, number]);
    assertEquals(await collect(node, { splits: splitsOf(...runs) }), ROWS);
    const backwards = await collect(node, { splits: splitsOf(...runs.toReversed()) });
    assertEquals(backwards.slice(0, 2), [{ x: 18 }, { x: 19 }]);
    assertEquals(backwards.length, 20);
  });
});

/** Reads each part of a far file by itself. */
async function readByParts(bytes: Uint8Array<ArrayBuffer>, nodeOf: (url: string) => RowFileNode) {
  await using server = new RangeServer(bytes);
  const node = nodeOf(`${server.origin}/file`);
  const parts = (await listSplitTable(node, new DenoHost()))[0]!;
  server.ranges.length = 0;
  let rows = 0;
  for (const { start, stop } of parts) {
    rows += (await collect(node, { splits: splitsOf([start, stop]) })).length;
  }
  const { requestedBytes, ranges } = server;
  return { parts: parts.length, rows, requestedBytes, requests: ranges.length };
}

Deno.test("parts of far row files request their own bytes, and little else", async () => {
  const rows = 2_500;
  const texts = Array.from({ length: rows }, (_, i) => `${i} `.padEnd(4_000));
  const columnData = ["a", "b"].map((name) => ({ name, type: "STRING" as const, data: texts }));
  const options = { codec: "UNCOMPRESSED", statistics: false, rowGroupSize: 40 } as const;
  const parquet = new Uint8Array(parquetWriteBuffer({ columnData, ...options }));
  const npy = npyBytes("<f8", [rows, 1_000], new Float64Array(rows * 1_000));
  const labels = npyBytes("<i4", [rows], new Int32Array(rows));
  const npz = new Uint8Array(await archive({ "x.npy": npy, "y.npy": labels }));
  const cases = [
    [parquet, (url: string) => new ParquetNode(url), 2],
    [npy, (url: string) => new NpyNode(url), 5],
    [npz, (url: string) => new NpzNode(url), 5],
  ] as const;
  for (const [bytes, node, parts] of cases) {
    const found = await readByParts(bytes, node);
    assertEquals([found.parts, found.rows], [parts, rows]);
    // A beginning and an end for each part.
    const most = bytes.length + parts * (64 * 1024 + JUMP_RANGE_BYTES);
    assertLess(found.requestedBytes, most + 1);
    assertLess(found.requests, 5 * parts + 1);
  }
});

Deno.test("row files continue from a saved iterator", async () => {
  await withDatasets(async (datasets) => {
    for (const [kind, dataset] of Object.entries(datasets)) {
      for (const taken of [0, 3, 10, 15, 20]) {
        await using first = dataset.iterator();
        for (let i = 0; i < taken; i++) await first.next();
        const state = await first.save();
        await using second = dataset.iterator();
        await second.restore(state);
        const rest = [];
        for await (const row of second) rest.push(row);
        assertEquals(rest, ROWS.slice(taken), `${kind} after ${taken}`);
      }
    }
  });
});

Deno.test("row files are batched by their spec", async () => {
  await withFiles(await filesOf(0, 3), async (folder) => {
    const spec = { x: new TensorSpec("float32", []), name: new TensorSpec("string", []) };
    const dataset = Dataset.parquet(`${folder}/parquet`, { spec });
    assertEquals(dataset.elementSpec, spec);
    assertEquals(Dataset.parquet(`${folder}/parquet`).elementSpec, undefined);
    for await (const batch of dataset.batch(3)) {
      const { x, name } = batch as unknown as { x: Tensor; name: Tensor };
      assertEquals(x, tensor(new Float32Array([0, 1, 2])));
      assertEquals(name, tensor(["row 0", "row 1", "row 2"]));
    }
  });
});

Deno.test("a row that does not fit its spec is an error; missing values are not", async () => {
  const columnData = [
    { name: "x", data: [0, 1, 2, 3], type: "DOUBLE" as const },
    { name: "y", data: ["a", null, "c", null], type: "STRING" as const },
  ];
  const parquet = new Uint8Array(parquetWriteBuffer({ columnData }));
  await withFiles({ parquet }, async (folder) => {
    const rowsAs = (spec: ElementSpec, numParallelReads: number) =>
      collect(Dataset.parquet(`${folder}/parquet`, { spec, numParallelReads }).node);
    const x = new TensorSpec("float64", []);
    const y = new TensorSpec("string", []);
    for (const reads of [1, 2]) {
      assertEquals(await rowsAs({ x, y }, reads), await rowsAs(undefined, reads));
      const found = await rowsAs({ x, y: new TensorSpec("bool", []) }, reads);
      assertEquals(found.map((row) => row instanceof LeatError), [true, false, true, false]);
      const { code, message } = found[0] as LeatError;
      assertEquals(code, "invalid_argument");
      assertStringIncludes(message, `parquet: a row of ${folder}/parquet: component y is "a"`);
      const [other] = await rowsAs({ x }, reads);
      assertStringIncludes((other as LeatError).message, "an object of {x, y}, but the spec says");
    }
  });
});

Deno.test("row files that cannot be read are the only ones lost", async () => {
  const good = await filesOf(0, 2);
  await withFiles({ ...good, empty: "" }, async (folder) => {
    const make = {
      parquet: (files: string[]) => Dataset.parquet(files, { columns: ["x"] }),
      arrow: (files: string[]) => Dataset.arrow(files, { columns: ["x"] }),
      npy: (files: string[]) => Dataset.npy<number>(files).map((x) => ({ x })),
      npz: (files: string[]) => Dataset.npz(files, { columns: ["x"] }),
    };
    for (const [kind, dataset] of Object.entries(make)) {
      const files = ["none", "empty", kind].map((name) => `${folder}/${name}`);
      const found = await collectWithErrors(dataset(files));
      assertEquals(found, ["error not_found", "error data_loss", { x: 0 }, { x: 1 }], kind);
    }
    const error = await assertRejects(
      () => Dataset.parquet(`${folder}/parquet`, { columns: ["y"] }).iterator().next(),
      LeatError,
      `${folder}/parquet`,
    );
    assertEquals(error.code, "not_found");
  });
});

Deno.test("row files refuse compression, invalid columns and invalid specs", () => {
  const refused = (make: () => unknown, part: string) => {
    const error = assertThrows(make, LeatError, part);
    assertEquals(error.code, "invalid_argument");
  };
  const options = { compression: "gzip" } as object;
  refused(() => Dataset.parquet("x", options), "parquet: compression");
  refused(() => Dataset.arrow("x", options), "arrow: compression");
  refused(() => Dataset.npy("x", options), "npy: compression");
  refused(() => Dataset.npz("x", options), "npz: compression");
  for (const columns of [[], ["a", "a"], [""], "a", [1]]) {
    refused(() => Dataset.parquet("x", { columns: columns as string[] }), "parquet: columns");
  }
  refused(() => Dataset.npy("x", { spec: 5 as unknown as TensorSpec }), "npy: spec");
  refused(() => Dataset.npy("x", { numParallelReads: 0 }), "npy: numParallelReads");
  assertStringIncludes(String(Dataset.parquet("x", { columns: ["a"] }).explain()), "columns");
  const node: DatasetNode = Dataset.parquet("x").node;
  assertEquals(node.attributes, { numParallelReads: 1 });
});
