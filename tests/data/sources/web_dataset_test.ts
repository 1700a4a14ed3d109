/** `webDataset` over real archives, made by Python's tarfile in each of its formats. */

import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";
import { gzipSync } from "node:zlib";
import { LeatError } from "../../../core/error.ts";
import type { Tensor } from "../../../core/tensor.ts";
import { Dataset, TensorSpec } from "../../../mod.ts";
import { WebDatasetNode } from "../../../data/sources/web_dataset.ts";
import { deserializeGraph, serializeGraph } from "../../../data/wire.ts";
import { tar } from "../formats/tar_writer.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { collect, splitsOf } from "./running.ts";

/** Two samples in each archive; the second archive is truncated in its second sample. */
const FIRST = tar(
  { name: "0.txt", contents: "zero" },
  { name: "0.cls", contents: "0" },
  { name: "1.txt", contents: "one" },
  { name: "1.cls", contents: "1" },
);
const SECOND = tar(
  { name: "2.txt", contents: "two" },
  { name: "2.cls", contents: "2" },
  { name: "3.txt", contents: "three".repeat(500) },
);
const FILES = { "a.tar": FIRST, "b.tar": SECOND.slice(0, 4000), "c.tar": new Uint8Array(0) };
const OPTIONS = { extensions: ["txt", "cls"], decode: ["txt", "cls"] } as const;

Deno.test("webDataset reads one archive after the other, and continues after a damaged one", async () => {
  await withFiles(FILES, async (folder) => {
    const paths = ["b.tar", "missing.tar", "c.tar", "a.tar"].map((name) => `${folder}/${name}`);
    const [two, cut, missing, ...rest] = await collect(new WebDatasetNode(paths, OPTIONS));
    assertEquals(two, { __key__: "2", txt: "two", cls: 2 });
    assertEquals((cut as LeatError).code, "data_loss");
    assertStringIncludes((cut as LeatError).message, `Tar file ${folder}/b.tar, at byte 2048`);
    assertEquals((missing as LeatError).code, "not_found");
    assertEquals(rest, [
      { __key__: "0", txt: "zero", cls: 0 },
      { __key__: "1", txt: "one", cls: 1 },
    ]);
  });
});

Deno.test("webDataset reads archives in parallel, by splits, and compressed", async () => {
  const files = { "a.tar": FIRST, "b.tgz": gzipSync(SECOND) };
  await withFiles(files, async (folder) => {
    const paths = [`${folder}/a.tar`, `${folder}/b.tgz`];
    const keys = async (options: object, splits?: [number, number][]) => {
      const node = new WebDatasetNode(paths, { compression: "auto", ...options });
      const found = await collect(node, splits && { splits: splitsOf(...splits) });
      return found.map((sample) => (sample as { __key__: string }).__key__);
    };
    assertEquals(await keys({}), ["0", "1", "2", "3"]);
    assertEquals(await keys({ numParallelReads: 2 }), ["0", "2", "1", "3"]);
    assertEquals(await keys({}, [[1, 2]]), ["2", "3"]);
  });
});

Deno.test("webDataset continues from every checkpoint", async () => {
  const files = { ...FILES, "b.tar": gzipSync(FILES["b.tar"]) };
  await withFiles(files, async (folder) => {
    const paths = ["a", "b", "c"].map((name) => `${folder}/${name}.tar`);
    await assertCheckpointLaw(() => Dataset.webDataset(paths.slice(0, 1), OPTIONS));
    await assertCheckpointLaw(() => Dataset.webDataset(paths[1]!, { compression: "gzip" }));
    await assertCheckpointLaw(() =>
      Dataset.webDataset([...paths, ...paths], { numParallelReads: 3 })
    );
  });
});

Deno.test("webDataset is the same after serialisation, with its functions", async () => {
  await withFiles(FILES, async (folder) => {
    const node = new WebDatasetNode(`${folder}/a.tar`, { ...OPTIONS, sampleBytesMax: 1038 });
    const copy = deserializeGraph(serializeGraph(node), { isOwn: true });
    assertEquals(copy.attributes, node.attributes);
    assertEquals(copy.elementSpec, node.elementSpec);
    const errorsOf = (found: unknown[]) =>
      found.map((one) => one instanceof LeatError ? one.message : one);
    const found = errorsOf(await collect(node));
    assertEquals(errorsOf(await collect(copy)), found);
    assertStringIncludes(String(found[0]), "at least 1039 bytes, more than 1038 (sampleBytesMax)");
    assertEquals(found[1], { __key__: "1", txt: "one", cls: 1 });
    const lengths = Dataset.webDataset<{ txt: Uint8Array }>(`${folder}/a.tar`)
      .map(({ txt }) => txt.length);
    const back = Dataset.deserialize(lengths.serialize(), { trustPipeline: true });
    assertEquals(await Array.fromAsync(back), [4, 3]);
  });
});

Deno.test("webDataset with extensions knows its spec, so that samples can be batched", async () => {
  const node = new WebDatasetNode("x.tar", {
    extensions: ["JPG", "cls", "json"],
    decode: ["cls", "json"],
  });
  assertEquals(node.elementSpec, {
    __key__: new TensorSpec("string", []),
    jpg: new TensorSpec("bytes", []),
    cls: new TensorSpec("int32", []),
    json: undefined,
  });
  assertEquals(new WebDatasetNode("x.tar").elementSpec, undefined);
  await withFiles(FILES, async (folder) => {
    const batches = Dataset.webDataset(`${folder}/a.tar`, {
      extensions: ["txt", "cls"],
      decode: ["cls"],
    })
      .batch(2);
    const [batch] = await Array.fromAsync(batches) as Record<string, Tensor>[];
    assertEquals([batch!.txt!.dtype, batch!.txt!.shape], ["bytes", [2]]);
    assertEquals([batch!.cls!.dtype, batch!.cls!.toArray()], ["int32", [0, 1]]);
    assertEquals(batch!.__key__!.toArray(), ["0", "1"]);
  });
});

Deno.test("webDataset names the argument that it refuses", () => {
  const cases: [object, string][] = [
    [{ extensions: "jpg" }, "extensions must be an array"],
    [{ extensions: [".jpg"] }, "extensions without their dot"],
    [{ decode: ["jpg"] }, `decode must be an array of some of "json", "txt", "cls"`],
    [{ sampleBytesMax: 0 }, "sampleBytesMax must be an integer of at least 1"],
    [{ compression: "rar" }, "compression must be one of"],
  ];
  for (const [options, message] of cases) {
    const error = assertThrows(() => new WebDatasetNode("x.tar", options), LeatError) as LeatError;
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, message);
  }
});

/**
 * Writes `argv[1]` in the format `argv[2]`: long names, a folder, links, and contents of many
 * sizes.
 */
const PACK = `
import io, sys, tarfile
path, form = sys.argv[1:]
with tarfile.open(path, "w", format=getattr(tarfile, form + "_FORMAT")) as tar:
    def add(name, data=b"", kind=tarfile.REGTYPE, link=""):
        info = tarfile.TarInfo(name)
        info.size, info.type, info.linkname, info.mtime = len(data), kind, link, 1700000000
        tar.addfile(info, io.BytesIO(data))
    add("folder", kind=tarfile.DIRTYPE)
    for i in range(40):
        name = "folder/" + ("" if i % 3 else "a long name " * 7 + "/") + str(i)
        if form != "USTAR" and i % 5 == 0: name = "folder/" + "é" * 150 + str(i)
        add(name + ".seg.bin", bytes([i]) * (i * 37))
        add(name + ".TXT", name.encode())
    add("folder/link.txt", kind=tarfile.SYMTYPE, link="x" * 90)
    add("folder/hard.txt", kind=tarfile.LNKTYPE, link="folder/1.TXT")
`;

async function hasPython(): Promise<boolean> {
  try {
    return (await new Deno.Command("python3", { args: ["-c", "import tarfile"] }).output()).success;
  } catch {
    return false;
  }
}

Deno.test({
  name: "webDataset reads what Python's tarfile packs, in each of its formats",
  ignore: !await hasPython(),
  fn: async () => {
    for (const format of ["USTAR", "GNU", "PAX"]) {
      await withFiles({ "pack.py": PACK }, async (folder) => {
        const path = `${folder}/packed.tar`;
        const args = [`${folder}/pack.py`, path, format];
        const { success, stderr } = await new Deno.Command("python3", { args }).output();
        assert(success, new TextDecoder().decode(stderr));
        const found = await collect(new WebDatasetNode(path, { decode: ["txt"] }));
        assertEquals(found.length, 40, format);
        found.forEach((sample, i) => {
          const { __key__: key, txt, ...parts } = sample as Record<string, unknown>;
          assertEquals(txt, key, format);
          assert((key as string).endsWith(String(i)));
          assertEquals(parts, { "seg.bin": new Uint8Array(i * 37).fill(i) });
        });
      });
    }
  },
});
