/** `save`, `Dataset.load` and `snapshot`: what is written when, and read back. */
import { openIterator } from "../../../data/dataset_iterator.ts";
import {
  Dataset,
  LeatError,
  type SaveProgress,
  SHARD_HINT,
  tensor,
  TensorSpec,
} from "../../../mod.ts";
import { END } from "../../../data/iterator.ts";
import { installedHost } from "../../../data/host.ts";
import { JSON_STRUCTURES_MAX } from "../../../core/json.ts";
import { encodeDocument } from "../../../data/saved/document.ts";
import { entryName } from "../../../data/saved/ledger.ts";
import { encodeManifest, type Manifest, readManifest } from "../../../data/saved/manifest.ts";
import { listSplitTable } from "../../../data/sharding/splits.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../../assert.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { collectWithErrors, failingOn } from "../lib/collect.ts";
import { outcomesOf, readOutcomes } from "../lib/outcomes.ts";
import { inFolder } from "../../lib/temp_folder.ts";

async function namesIn(folder: string): Promise<string[]> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  return names.map((name) => name.replace(/^[0-9a-f]{16}-/, "")).sort();
}

/** The path of the only file of elements in a folder. */
async function onlyChunkOf(folder: string): Promise<string> {
  const names = (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);
  const [chunk, ...others] = names.filter((name) => name.includes(".tfrecord"));
  assertEquals(others, []);
  return `${folder}/${chunk}`;
}

/** The code of the error that a promise rejects with. */
async function codeOf(failing: () => Promise<unknown>): Promise<string> {
  return (await assertRejects(failing, LeatError)).code;
}

Deno.test("a save or cache whose pipeline cannot begin leaves the folder to others", async () => {
  await inFolder(async (folder) => {
    const unread = Dataset.range(4).shard(SHARD_HINT, SHARD_HINT);
    await assertRejects(() => unread.save(`${folder}/saved`), LeatError);
    await Dataset.range(4).save(`${folder}/saved`);
    const codes = [];
    for (let i = 0; i < 2; i++) {
      const iterator = unread.snapshot(`${folder}/kept`).iterator();
      codes.push(await codeOf(() => iterator.next()));
    }
    assertEquals(codes[1], codes[0]);
    assert(codes[0] !== "already_exists");
  });
});

Deno.test("a restored reader of a damaged chunk tells of the damage once, as the saved one does", async () => {
  await inFolder(async (folder) => {
    await Dataset.range(4).save(folder);
    const path = await onlyChunkOf(folder);
    const bytes = await Deno.readFile(path);
    bytes[bytes.length - 1]! ^= 1; // the checksum of the last record
    await Deno.writeFile(path, bytes);
    const loaded = await Dataset.load(folder);
    await using reader = loaded.iterator();
    assertEquals((await readOutcomes(reader, 4)).length, 4);
    await using restored = loaded.iterator();
    await restored.restore(await reader.save());
    assertEquals(await outcomesOf(restored), await outcomesOf(reader));
  });
});

Deno.test("load reports surplus elements of a file once, and gives none of them", async () => {
  for (const compression of [undefined, "gzip"] as const) {
    await inFolder(async (folder) => {
      await Dataset.range(5).save(folder, { compression });
      const path = await onlyChunkOf(folder);
      const bytes = await Deno.readFile(path);
      await Deno.writeFile(path, new Uint8Array([...bytes, ...bytes]));
      const loaded = await Dataset.load<number>(folder);
      await using reader = loaded.iterator();
      for (let x = 0; x < 5; x++) assertEquals((await reader.next()).value, x);
      await using before = loaded.iterator();
      await before.restore(await reader.save());
      for (const iterator of [reader, before]) {
        const error = await assertRejects(() => iterator.next(), LeatError);
        assertEquals(error.code, "data_loss");
        assert(error.message.includes(`${path} is too long: it holds more than the 5`));
      }
      await using after = loaded.iterator();
      await after.restore(await reader.save());
      for (const iterator of [reader, after]) assertEquals((await iterator.next()).done, true);
    });
  }
});

Deno.test("a missing file of a saved dataset is not_found, with what to do", async () => {
  await inFolder(async (temporary) => {
    const folder = `${temporary}/what?`; // looks like a pattern
    await Dataset.range(4).save(folder);
    const path = await onlyChunkOf(folder);
    await Deno.remove(path);
    await using iterator = (await Dataset.load(folder)).iterator();
    const error = await assertRejects(() => iterator.next(), LeatError);
    assertEquals(error.code, "not_found");
    assertStringIncludes(error.message, path);
    assertStringIncludes(error.message, "remove the folder and have it written again");
    assert(!error.message.includes("Dataset.stored"), error.message);
  });
});

Deno.test("load fails for good, with what to do, if its dataset was overwritten", async () => {
  await inFolder(async (folder) => {
    await Dataset.range(4).save(folder);
    const loaded = await Dataset.load(folder);
    await Dataset.range(9).save(folder, { overwrite: true });
    for (const dataset of [loaded, loaded.ignoreErrors(), loaded.repeat(2)]) {
      const error = await assertRejects(() => Array.fromAsync(dataset), LeatError);
      assertEquals(error.code, "failed_precondition");
      assertStringIncludes(error.message, `${folder} was overwritten`);
      assertStringIncludes(error.message, "Load it again");
    }
    assertEquals((await Array.fromAsync(await Dataset.load(folder))).length, 9);
  });
});

Deno.test("load counts a damaged element, and reports surplus ones after it", async () => {
  await inFolder(async (folder) => {
    await Dataset.range(4).save(folder);
    const path = await onlyChunkOf(folder);
    const bytes = await Deno.readFile(path);
    const record = bytes.length / 4;
    const damaged = bytes.slice();
    damaged[2 * record - 1]! ^= 1; // the checksum of the second record
    await Deno.writeFile(path, damaged);
    await using whole = (await Dataset.load(folder)).iterator();
    assertEquals((await outcomesOf(whole)).length, 4, "no surplus and nothing missing");
    await Deno.writeFile(path, new Uint8Array([...damaged, ...bytes.slice(record)]));
    await using longer = (await Dataset.load(folder)).iterator();
    const outcomes = await outcomesOf(longer);
    assertEquals(outcomes.length, 5);
    assert(JSON.stringify(outcomes[4]).includes("too long"));
  });
});

Deno.test("encodeDocument refuses a document that nobody could read", () => {
  const files = "x".repeat(2 ** 27);
  const { code, message } = assertThrows(() => encodeDocument("f", { files }), LeatError);
  assertEquals(code, "resource_exhausted");
  assertStringIncludes(message, "chunkBytesMax");
  const wide = { files: new Array(JSON_STRUCTURES_MAX).fill([]) };
  assertThrows(() => encodeDocument("f", wide), LeatError, "JSON_STRUCTURES_MAX");
});

Deno.test("load refuses a wide document before it is parsed, and tells the limit", async () => {
  await inFolder(async (folder) => {
    for (const text of ["{},", '"a":1,']) {
      await Deno.writeTextFile(`${folder}/DONE`, text.repeat(JSON_STRUCTURES_MAX + 1));
      const error = await assertRejects(() => Dataset.load(folder), LeatError) as LeatError;
      assertEquals(error.code, "data_loss");
      assertStringIncludes(error.message, `${JSON_STRUCTURES_MAX} fields`);
    }
  });
});

Deno.test("load refuses a document that is too long, and tells the limit", async () => {
  await inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/DONE`, "{");
    await Deno.truncate(`${folder}/DONE`, 2 ** 27 + 1);
    const error = await assertRejects(() => Dataset.load(folder), LeatError) as LeatError;
    assertEquals(error.code, "data_loss");
    assertStringIncludes(error.message, `more than ${2 ** 27} bytes`);
  });
});

Deno.test("save and load keep elements, their number and spec", async () => {
  await inFolder(async (folder) => {
    const datasets: Record<string, Dataset<unknown>> = {
      numbers: Dataset.range(10),
      batches: Dataset.range(10).batch(4),
      ragged: Dataset.from([[1], [2, 3]].map((x) => tensor(x))).raggedBatch(2),
      trees: Dataset.from([{ a: [1n, "x"], $b: -0, c: null }, { a: [2n, "y"], $b: NaN, c: null }]),
      bytes: Dataset.from([new Uint8Array([1, 2]), new Uint8Array()]),
      empty: Dataset.range(0),
    };
    for (const compression of [undefined, "gzip"] as const) {
      for (const [name, dataset] of Object.entries(datasets)) {
        const path = `${folder}/${name}-${compression}`;
        const wanted = await outcomesOf(dataset.iterator());
        const { elements } = await dataset.save(path, { compression });
        const loaded = await Dataset.load(path);
        assertEquals(elements, wanted.length, name);
        assertEquals(loaded.cardinality(), wanted.length, name);
        assertEquals(await outcomesOf(loaded.iterator()), wanted, name);
        assertEquals(loaded.elementSpec, dataset.elementSpec, name);
        const copy = Dataset.deserialize(loaded.serialize(), { trustPipeline: true });
        assertEquals(await outcomesOf(copy.iterator()), wanted, name);
      }
    }
  });
});

Deno.test("save infers a missing spec", async () => {
  await inFolder(async (path) => {
    const specOf = async (elements: unknown[]) => {
      await Dataset.from(elements).map((x) => x).save(path, { overwrite: true });
      return (await Dataset.load(path)).elementSpec;
    };
    assertEquals(await specOf([tensor([1, 2]), tensor([3])]), new TensorSpec("float64", [null]));
    assertEquals(await specOf([{ x: "a" }, { x: "b" }]), { x: new TensorSpec("string", []) });
    assertEquals(await specOf([1, "a"]), undefined);
  });
});

Deno.test("save refuses a folder that is saved or being saved, and endless datasets", async () => {
  await inFolder(async (path) => {
    await Dataset.range(3).save(path);
    const loaded = await Dataset.load(path);
    const error = await assertRejects(() => Dataset.range(4).save(path), LeatError);
    assertEquals(error.code, "already_exists");
    assert(error.message.includes("overwrite"));
    assertEquals(await Array.fromAsync(loaded), [0, 1, 2]);
    await Dataset.range(4).save(path, { overwrite: true });
    assertEquals(await Array.fromAsync(await Dataset.load(path)), [0, 1, 2, 3]);
    assertEquals(await namesIn(path), ["000000.tfrecord", "DONE"]);
    assertEquals(await codeOf(() => Dataset.range(3).repeat().save(path)), "invalid_argument");
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const slow = Dataset.range(2).map(async (x) => (begun.resolve(), await gate.promise, x));
    const saving = slow.save(path, { overwrite: true });
    await begun.promise;
    const other = () => Dataset.range(1).save(path, { overwrite: true });
    assertEquals(await codeOf(other), "already_exists");
    gate.resolve();
    await saving;
  });
});

Deno.test("save leaves nothing if an element fails, and existing data stays", async () => {
  await inFolder(async (path) => {
    const failing = Dataset.range(5).map(failingOn(3));
    assertEquals(await codeOf(() => failing.save(path)), "data_loss");
    assertEquals(await namesIn(path), []);
    assertEquals(await codeOf(() => Dataset.load(path)), "not_found");
    await Dataset.range(2).save(path);
    assertEquals(await codeOf(() => failing.save(path, { overwrite: true })), "data_loss");
    assertEquals(await Array.fromAsync(await Dataset.load(path)), [0, 1]);
    const error = await assertRejects(() =>
      Dataset.from([new Set()]).save(path, { overwrite: true })
    );
    assertEquals((error as LeatError).code, "failed_precondition");
  });
});

Deno.test("a failing save removes the folders that it made, and no others", async () => {
  await inFolder(async (folder) => {
    await Deno.mkdir(`${folder}/mine`);
    const failing = Dataset.range(5).map(failingOn(3));
    for (const compression of [undefined, "gzip"] as const) {
      const options = { compression, chunkBytesMax: 1 }; // a file for each element
      for (const path of ["made", "mine", "mine/made/deep"]) {
        assertEquals(await codeOf(() => failing.save(`${folder}/${path}`, options)), "data_loss");
        assertEquals(await namesIn(folder), ["mine"]);
        assertEquals(await namesIn(`${folder}/mine`), []);
      }
    }
  });
});

Deno.test("save writes files of chunkBytesMax, reports progress, and workers share the files", async () => {
  await inFolder(async (path) => {
    const told: number[] = [];
    const dataset = Dataset.range(12).map((x) => new Uint8Array(1 << 19).fill(x));
    const { elements, sizeBytes } = await dataset.save(path, {
      chunkBytesMax: 1 << 21,
      onProgress: ({ elements }) => told.push(elements),
    });
    assertEquals(elements, 12);
    assert(sizeBytes > 12 << 19);
    assert(told.length > 3 && told.every((at, i) => i === 0 || at >= told[i - 1]!));
    assertEquals(told.at(-1), 12);
    const loaded = await Dataset.load<Uint8Array>(path);
    const [table] = await listSplitTable(loaded.node, installedHost());
    assertEquals(table!.length, (await namesIn(path)).length - 1);
    assert(table!.length > 1);
    const read: number[] = [];
    for (const split of table!) {
      const left = [split];
      const splits = {
        next: () => Promise.resolve(left.pop() ?? END),
        total: () => Promise.resolve(table!.length),
      };
      await using iterator = openIterator<Uint8Array>(loaded.node, { splits });
      for await (const x of iterator) read.push(x[0]!);
    }
    assertEquals(read, Array.from({ length: 12 }, (_, i) => i));
    await assertCheckpointLaw(() => loaded.map((x) => x[0]!));
  });
});

Deno.test("save whose last progress report throws leaves no saved dataset, and can be repeated", async () => {
  await inFolder(async (path) => {
    const dataset = Dataset.range(12);
    const onProgress = ({ elements }: SaveProgress) => {
      throw new Error(`told of ${elements}`);
    };
    const failed = await assertRejects(() => dataset.save(path, { onProgress }));
    assertStringIncludes((failed as Error).message, "told of 12");
    assertEquals(await namesIn(path), []);
    assertEquals((await dataset.save(path)).elements, 12);
  });
});

Deno.test("save divides elements into shards, and load joins these", async () => {
  await inFolder(async (path) => {
    await Dataset.range(7).save(path, { shardFunc: (x) => BigInt(x % 3) });
    assertEquals(await Array.fromAsync(await Dataset.load(path)), [0, 3, 6, 1, 4, 2, 5]);
    const inTurn = await Dataset.load<number>(path, {
      readerFunc: (shards) => shards.interleave((shard) => shard),
    });
    assertEquals(await Array.fromAsync(inTurn), [0, 1, 2, 3, 4, 5, 6]);
    for (const shard of [-1, 1024, 0.5, "a" as unknown as number]) {
      const failing = () => Dataset.range(1).save(`${path}/bad`, { shardFunc: () => shard });
      assertEquals(await codeOf(failing), "invalid_argument");
    }
  });
});

Deno.test("a save whose process died is no saved dataset", async () => {
  await inFolder(async (path) => {
    const script = `import { Dataset } from "${new URL("../../../mod.ts", import.meta.url)}";
      const dataset = Dataset.range(9).map((x) => {
        if (x === 5) Deno.kill(Deno.pid, "SIGKILL");
        return new Uint8Array(1 << 20).fill(x);
      });
      await dataset.save("${path}", { chunkBytesMax: 1 << 20 });`;
    const { success } = await new Deno.Command("deno", { args: ["eval", script] }).output();
    assertEquals(success, false);
    const left = await namesIn(path);
    assert(left.includes("DONE.partial") && left.includes("000000.tfrecord"), String(left));
    assertEquals(await codeOf(() => Dataset.load(path)), "not_found");
    await Dataset.range(2).save(path);
    assertEquals(await namesIn(path), ["000000.tfrecord", "DONE"]);
    assertEquals(await Array.fromAsync(await Dataset.load(path)), [0, 1]);
  });
});

Deno.test("snapshot is written once, and again if the pipeline before it has changed", async () => {
  await inFolder(async (path) => {
    let made = 0;
    const squares = (power: number) =>
      Dataset.range(4).map((x, { power }) => (made++, x ** power), { captures: { power } })
        .snapshot(path, { compression: "gzip" });
    for (let run = 0; run < 3; run++) {
      assertEquals(await Array.fromAsync(squares(2)), [0, 1, 4, 9]);
    }
    assertEquals(made, 4);
    assertEquals(await Array.fromAsync(squares(3)), [0, 1, 8, 27]);
    assertEquals(made, 8);
    assertEquals(await Array.fromAsync(squares(2).repeat(2)), [0, 1, 4, 9, 0, 1, 4, 9]);
    assertEquals(made, 8);
    assertEquals((await namesIn(path)).length, 2);
    const failing = Dataset.range(3).map(failingOn(1)).snapshot(`${path}/failing`);
    assertEquals(await collectWithErrors(failing), [0, "error data_loss", 2]);
    assertEquals(await collectWithErrors(failing), [0, "error data_loss", 2]);
  });
});

Deno.test("snapshot passes elements through while another iterator writes it", async () => {
  await inFolder(async (path) => {
    const dataset = Dataset.range(3).snapshot(path);
    await using writer = dataset.iterator();
    await writer.next();
    assertEquals(await Array.fromAsync(dataset), [0, 1, 2]);
    assertEquals(await Array.fromAsync(writer), [1, 2]);
    assertEquals(await Array.fromAsync(dataset), [0, 1, 2]);
  });
});

Deno.test("snapshot is sharded by shardFunc and read by readerFunc, saved and restored", async () => {
  await inFolder(async (path) => {
    const dataset = Dataset.range(7).snapshot(path, {
      shardFunc: async (x) => (await Promise.resolve(), x % 3),
      readerFunc: (shards, { random }) =>
        shards.interleave((shard, { Dataset, random: inner }) =>
          shard.zip(Dataset.range(9)).map(([x]) => [x, inner.int(1)])
        ).zip(
          Dataset.range(9).map((x, { randomState }) => x + randomState, {
            captures: { randomState: random.int(9) },
          }),
        ),
    });
    assertEquals(dataset.elementSpec, undefined, "what a reader makes");
    const writing = openIterator(dataset.node, { seed: 1n });
    assertEquals((await readOutcomes(writing, 9)).length, 7);
    await writing.return();
    const read = await outcomesOf(openIterator(dataset.node, { seed: 1n })) as {
      element: [[number, number], number];
    }[];
    assertEquals(read.map(({ element: [[x]] }) => x), [0, 1, 2, 3, 4, 5, 6]);
    await assertCheckpointLaw(() => dataset.repeat(2));
  });
});

Deno.test("a checkpoint of a snapshot that is being written continues to write it", async () => {
  await inFolder(async (path) => {
    const calls: number[] = [];
    const dataset = Dataset.range(5).snapshot(path, {
      shardFunc: (_, { index }) => (calls.push(index), index % 2),
    });
    const writer = dataset.iterator();
    await readOutcomes(writer, 3);
    const state = await writer.save();
    await writer.return();
    await using restored = dataset.iterator();
    await restored.restore(state);
    assertEquals(await Array.fromAsync(restored), [3, 4]);
    assertEquals(calls, [0, 1, 2, 3, 4]);
    assertEquals(await Array.fromAsync(dataset), [0, 2, 4, 1, 3]);
  });
});

Deno.test("save with overwrite leaves no file of the replaced save, however the folder is written", async () => {
  await inFolder(async (folder) => {
    for (const name of ["a b", "a{b,c}[d]*", "a//"]) {
      for (
        const path of [`${folder}/${name}`, `file://${folder}/${name}`, `file:${folder}/${name}`]
      ) {
        await Dataset.range(3).save(path, { overwrite: true });
        assertEquals(await codeOf(() => Dataset.range(1).save(path)), "already_exists");
        await Dataset.range(4).save(path, { overwrite: true });
        assertEquals(await Array.fromAsync(await Dataset.load(path)), [0, 1, 2, 3]);
        assertEquals(await namesIn(`${folder}/${name}`), ["000000.tfrecord", "DONE"]);
      }
    }
  });
});

Deno.test("save, snapshot and cache check their arguments", async () => {
  const dataset = Dataset.range(1);
  assertThrows(() => dataset.cache(""), LeatError);
  assertThrows(() => dataset.snapshot(5 as unknown as string), LeatError);
  assertThrows(() => dataset.snapshot("x", { compression: "lz4" as "gzip" }), LeatError);
  assertThrows(() => dataset.snapshot("x", { readerFunc: 1 as never }), LeatError);
  assertEquals(await codeOf(() => dataset.save("x", { chunkBytesMax: 0 })), "invalid_argument");
  assertEquals(await codeOf(() => dataset.save("s3://bucket/key")), "unimplemented");
  assertEquals(await codeOf(() => dataset.save("/not-writable-here")), "permission_denied");
});

Deno.test("load reads no file outside of the folder, whatever the folder lists", async () => {
  await inFolder(async (folder) => {
    const [own, hostile] = [`${folder}/own`, `${folder}/hostile`];
    await Dataset.range(3).save(own);
    await Dataset.range(3).save(hostile);
    const [chunk] = (await readManifest(installedHost(), own))!.chunks;
    const manifest = (await readManifest(installedHost(), hostile))!;
    for (const name of [`../own/${chunk!.name}`, `${own}/${chunk!.name}`, "..", ""]) {
      const forged = encodeManifest({ ...manifest, chunks: [{ ...chunk!, name }] });
      await Deno.writeFile(`${hostile}/DONE`, forged);
      const load = async () => await Array.fromAsync(await Dataset.load(hostile));
      const error = await assertRejects(
        load,
        LeatError,
        "which cannot be the name of a file in it",
      );
      assertEquals(error.code, "data_loss");
    }
  });
});

Deno.test("load answers whatever a folder of others holds with data_loss, a remedy, and nothing raw", async () => {
  await inFolder(async (folder) => {
    const hostile = `${folder}/hostile`;
    await Dataset.range(3).save(hostile);
    const manifest = (await readManifest(installedHost(), hostile))!;
    const [chunk] = manifest.chunks;
    const load = async (file: string, bytes: Uint8Array, wait: boolean) => {
      await Deno.mkdir(hostile, { recursive: true });
      await Deno.writeFile(`${hostile}/${file}`, bytes);
      const error = await assertRejects(
        async () => await Array.fromAsync(await Dataset.load(hostile, { wait })),
        LeatError,
      );
      await Deno.remove(hostile, { recursive: true });
      assertEquals(error.code, "data_loss", error.message);
      assertStringIncludes(error.message, "to have it written again.");
      assertStringIncludes(error.message, hostile);
      const told = `${Deno.inspect(error)}${JSON.stringify(error.toWire())}`;
      // deno-lint-ignore no-control-regex -- they are what is looked for
      assert(!/[\u0000-\u0009\u000b-\u001f]|secret|TypeError/.test(told), told);
      assert(error.message.length < 1_000);
    };
    for (
      const forged of [
        ...["x", [null], [5], {}, undefined].map((chunks) => ({ chunks })),
        ...[
          { name: 5 },
          { name: "x\0y" },
          { name: "x\x1b[31m" },
          { name: "long".repeat(10_000) },
          { shard: -1 },
          { count: -3 },
          { count: NaN },
          { sizeBytes: "1" },
        ].map((part) => ({ chunks: [{ ...chunk!, ...part }] })),
        { id: "../../../etc" },
        { id: 5 },
        { spec: { a: 1 } },
        { compression: "\x1b[31m" },
        { pipeline: 5 },
      ]
    ) await load("DONE", encodeManifest({ ...manifest, ...forged } as Manifest), false);
    // As a link to any file of this machine would be.
    for (const text of ["secret=5\n", '{"secret":5}', "null", "[".repeat(1_000_000)]) {
      await load("DONE", new TextEncoder().encode(text), false);
    }
    const { id, compression } = manifest;
    for (
      const forged of [{ id: "../../../etc" }, { joint: "x" }, { joint: { owner: 5 } }, {
        compression: "x",
      }]
    ) {
      const head = encodeDocument("leat-saving-1", { id, compression, ...forged });
      await load("SAVING", head, false);
      await load("SAVING", head, true);
    }
  });
});

Deno.test("load with wait answers a forged ledger with data_loss", async () => {
  await inFolder(async (folder) => {
    const id = "0123456789abcdef";
    const [chunk] = [{ name: "c", shard: 0, count: 1, sizeBytes: 1 }];
    await Deno.writeFile(`${folder}/SAVING`, encodeDocument("leat-saving-1", { id }));
    for (
      const forged of [
        { chunks: [null] },
        { number: "0" },
        { joint: {} },
        { joint: { upTo: 1, isLast: false, carried: [{}] } },
      ]
    ) {
      const entry = encodeDocument("leat-ledger-1", { number: 0, chunks: [chunk], ...forged });
      await Deno.writeFile(`${folder}/${entryName(id, 0)}`, entry);
      const load = async () => await Array.fromAsync(await Dataset.load(folder, { wait: true }));
      assertEquals(await codeOf(load), "data_loss");
    }
  });
});
