/** ElementsWriter where the storage refuses to remove files. */
import { LeatError } from "../../../core/error.ts";
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
