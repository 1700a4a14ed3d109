/** ElementsWriter where the storage refuses to remove files. */
import { LeatError } from "../../../core/error.ts";
import { ChunkWriter } from "../../../data/saved/chunk_writer.ts";
import { ElementsWriter } from "../../../data/saved/elements_writer.ts";
import { readManifest } from "../../../data/saved/manifest.ts";
import { assert, assertEquals } from "../../assert.ts";
import { MemoryHost } from "../lib/memory_host.ts";

const FOLDER = "/saved";

/** A host that cannot remove files, and keeps its warnings. */
class KeepingHost extends MemoryHost {
  readonly warnings: string[] = [];

  constructor() {
    super();
    this.newFiles.remove = (path) => {
      throw new LeatError("unavailable", `${path} cannot be removed`);
    };
  }

  override warn(message: string): void {
    this.warnings.push(message);
  }
}

/** A writer that has written two chunks. */
async function writerOn(host: MemoryHost): Promise<ElementsWriter> {
  const writer = await ElementsWriter.begin(host, FOLDER, { ledger: "entries", chunkBytesMax: 1 });
  await writer.clear(() => {});
  for (const element of [1, 2]) {
    await writer.write(element);
    await writer.save();
  }
  return writer;
}

Deno.test("ElementsWriter that is abandoned unlocks its folder, though its files cannot be removed", async () => {
  const host = new KeepingHost();
  const writer = await writerOn(host);
  writer.abandon();
  assertEquals([...host.locked], []);
  assert(host.warnings[0]!.includes(`${FOLDER}/SAVING cannot be removed`), host.warnings[0]);
});

Deno.test("ElementsWriter finishes, though what it replaces cannot be removed", async () => {
  const host = new KeepingHost();
  const writer = await writerOn(host);
  const { id } = await writer.finish();
  assertEquals((await readManifest(host, FOLDER))?.id, id);
  assertEquals([...host.locked], []);
  assert(host.warnings.length > 0);
});

Deno.test("ElementsWriter.sizeBytes is the size of all chunks, in open shards and after resuming", async () => {
  const host = new MemoryHost();
  const first = await ElementsWriter.begin(host, FOLDER, {});
  await first.write(new Uint8Array(1 << 20), 0);
  const open = first.sizeBytes;
  assert(open > 1 << 20, `${open} bytes`);
  await first.write("buffered", 1);
  assertEquals(first.sizeBytes, open);
  const state = await first.save();
  const sizeOf = (chunks: typeof state.chunks) =>
    chunks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  assert(first.sizeBytes > open);
  assertEquals(first.sizeBytes, sizeOf(state.chunks));
  first.abandon();
  const second = (await ElementsWriter.resume(host, FOLDER, {}, state))!;
  assertEquals(second.sizeBytes, first.sizeBytes);
  await second.write("more");
  const { chunks } = await second.finish();
  assertEquals([chunks.length, second.sizeBytes], [3, sizeOf(chunks)]);
});

Deno.test("ElementsWriter.sizeBytes asks no open chunk for its size", async () => {
  const writer = await ElementsWriter.begin(new MemoryHost(), FOLDER, {});
  for (let shard = 0; shard < 10; shard++) await writer.write(shard, shard);
  const { get } = Object.getOwnPropertyDescriptor(ChunkWriter.prototype, "sizeBytes")!;
  let asked = 0;
  Object.defineProperty(ChunkWriter.prototype, "sizeBytes", {
    configurable: true,
    get(): number {
      asked++;
      return get!.call(this);
    },
  });
  try {
    assertEquals(writer.sizeBytes, 0);
    assertEquals(asked, 0);
  } finally {
    Object.defineProperty(ChunkWriter.prototype, "sizeBytes", { configurable: true, get: get! });
    writer.abandon();
  }
});

Deno.test("ElementsWriter begins a new file after chunkBytesMax, however few bytes that is", async () => {
  const elementBytes = 440;
  for (const compression of [undefined, "gzip"] as const) {
    for (const chunkBytesMax of [1_000, 50_000]) {
      const options = { compression, chunkBytesMax };
      const writer = await ElementsWriter.begin(new MemoryHost(), FOLDER, options);
      for (let i = 0; i < 500; i++) {
        await writer.write(crypto.getRandomValues(new Uint8Array(elementBytes)));
      }
      const { chunks } = await writer.finish();
      assertEquals(chunks.reduce((sum, { count }) => sum + count, 0), 500);
      for (const { sizeBytes } of chunks.slice(0, -1)) {
        const isRight = sizeBytes >= chunkBytesMax && sizeBytes < chunkBytesMax + 2 * elementBytes;
        assert(isRight, `${compression}: ${sizeBytes} bytes for ${chunkBytesMax}`);
      }
      assert(chunks.length > 1);
    }
  }
});
