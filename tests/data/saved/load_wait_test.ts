/** `Dataset.load` of a folder that is still being written. */
import { openIterator } from "../../../data/dataset_iterator.ts";
import { Dataset, type Host, LeatError } from "../../../mod.ts";
import { installedHost } from "../../../data/host.ts";
import { ElementsWriter } from "../../../data/saved/elements_writer.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { assertCheckpointLaw } from "../lib/checkpoint_law.ts";
import { inFolder } from "../../lib/temp_folder.ts";

const SOON = { wait: { pollMs: 1 } };

/** Large numbers, a chunk each, that are given one by one. */
function gated(count: number) {
  const gates = Array.from({ length: count }, () => Promise.withResolvers<void>());
  const dataset = Dataset.range(count).map(async (x) => {
    await gates[x]!.promise;
    return new Uint8Array(1 << 20).fill(x);
  }, { numParallelCalls: 1 });
  return { dataset, gates };
}

const A_CHUNK_EACH = { chunkBytesMax: 1 << 20 };

Deno.test("load waits for a save that has not begun, and gives chunks while later ones are being made", async () => {
  await inFolder(async (folder) => {
    const path = `${folder}/new`;
    const { dataset, gates } = gated(4);
    const loaded = await Dataset.load<Uint8Array>(path, SOON);
    const iterator = loaded.iterator();
    const first = iterator.next();
    const saving = dataset.save(path, A_CHUNK_EACH);
    for (const [i, gate] of gates.entries()) {
      gate.resolve();
      // The next one is not made yet: this one is read meanwhile.
      const { value } = i === 0 ? await first : await iterator.next();
      assertEquals((value as Uint8Array)[0], i);
    }
    await saving;
    assertEquals((await iterator.next()).done, true);
    const names = (await Array.fromAsync(Deno.readDir(path))).map(({ name }) => name);
    assertEquals(names.filter((name) => !name.endsWith(".tfrecord")), ["DONE"]);
  });
});

Deno.test("load without waiting reports an unfinished save, and what to do", async () => {
  await inFolder(async (path) => {
    const { dataset, gates } = gated(1);
    const saving = dataset.save(path);
    const iterator = (await Dataset.load(path, SOON)).iterator();
    const first = iterator.next();
    let message = "";
    while (!message.includes("still being written")) {
      // The save needs the event loop, which a small file's opening does not wait for.
      await new Promise((resolve) => setTimeout(resolve));
      const error = await assertRejects(() => Dataset.load(path), LeatError);
      assertEquals(error.code, "not_found");
      message = error.message;
    }
    assert(message.includes("{ wait: true }"), message);
    gates[0]!.resolve();
    await saving;
    assertEquals((await first).done, false);
    await iterator.return();
  });
});

Deno.test("load that waits fails if the save is abandoned, and does not switch to another one", async () => {
  await inFolder(async (path) => {
    const { dataset, gates } = gated(3);
    const failing = dataset.map((x) => {
      if (x[0] === 2) throw new Error("no more");
      return x;
    });
    const saving = assertRejects(() => failing.save(path, A_CHUNK_EACH));
    const iterator = (await Dataset.load<Uint8Array>(path, SOON)).iterator();
    gates[0]!.resolve();
    gates[1]!.resolve();
    for (const wanted of [0, 1]) {
      assertEquals(((await iterator.next()).value as Uint8Array)[0], wanted);
    }
    const place = await iterator.save();
    gates[2]!.resolve();
    const error = await assertRejects(() => iterator.next(), LeatError);
    assertEquals(error.code, "aborted");
    assertEquals((await iterator.next()).done, true);
    await saving;

    await dataset.save(path);
    const again = (await Dataset.load<Uint8Array>(path, SOON)).iterator();
    const anew = await assertRejects(() => again.restore(place), LeatError);
    assertEquals(anew.code, "failed_precondition");
  });
});

Deno.test("load that waits gives finished chunks, and can be saved and restored", async () => {
  await inFolder(async (path) => {
    const dataset = Dataset.range(6).map((x) => new Uint8Array(1 << 20).fill(x));
    await dataset.save(path, A_CHUNK_EACH);
    const loaded = await Dataset.load<Uint8Array>(path, { wait: true });
    await assertCheckpointLaw(() => loaded.map((x) => x[0]!));
    const copy = Dataset.deserialize(loaded.serialize(), { trustPipeline: true });
    assertEquals((await Array.fromAsync(copy)).length, 6);
  });
});

Deno.test("load that waits gives null as an element, and continues after it", async () => {
  await inFolder(async (path) => {
    await Dataset.from([1, null, 3, null]).save(path);
    const loaded = await Dataset.load<number | null>(path, { wait: true });
    assertEquals(await Array.fromAsync(loaded), [1, null, 3, null]);
    await assertCheckpointLaw(() => loaded);
  });
});

/** This machine with a clock that moves only during sleeps. */
function withVirtualTime(host: Host): Host {
  let nowMs = 0;
  return Object.create(host, {
    nowMs: { value: () => nowMs },
    sleep: { value: (ms: number) => (nowMs += ms, Promise.resolve()) },
    files: { value: host.files },
    newFiles: { value: host.newFiles },
    entropy64: { value: () => host.entropy64() },
    yield: { value: () => host.yield() },
  });
}

Deno.test("load that waits takes a slow writer of small elements for alive", async () => {
  await inFolder(async (path) => {
    const host = withVirtualTime(installedHost());
    const writer = await ElementsWriter.begin(host, path, { ledger: "entries" });
    await writer.clear(() => {});
    let written = 0;
    // While the reader sleeps, the writer gets an element.
    const slow = Object.create(host, {
      sleep: {
        value: async (ms: number) => {
          await host.sleep(ms);
          if (written < 100) await writer.write(written++);
          else if (written++ === 100) await writer.finish();
        },
      },
    });
    const { node } = await Dataset.load(path, { wait: { pollMs: 100, timeoutMs: 2_000 } });
    await using iterator = openIterator(node, { host: slow });
    assertEquals((await Array.fromAsync(iterator)).length, 100);
    assert(host.nowMs() >= 10_000);
  });
});

Deno.test("load times out if nothing is written", async () => {
  await inFolder(async (path) => {
    const { node } = await Dataset.load(`${path}/never`, { wait: { timeoutMs: 5_000 } });
    await using iterator = openIterator(node, { host: withVirtualTime(installedHost()) });
    const error = await assertRejects(() => iterator.next(), LeatError);
    assertEquals(error.code, "deadline_exceeded");
    assert(error.message.includes("timeoutMs"), error.message);
    assertEquals((await iterator.next()).done, true, "told once");
    // It had not ended: it continues from its checkpoint when there is more.
    const place = await iterator.save();
    await Dataset.range(3).save(`${path}/never`);
    await using again = openIterator(node, {});
    await again.restore(place);
    assertEquals(await Array.fromAsync(again), [0, 1, 2]);
  });
});

Deno.test("load that waits opens a complete chunk only to read it", async () => {
  await inFolder(async (path) => {
    const { dataset, gates } = gated(4);
    const saving = dataset.save(path, A_CHUNK_EACH);
    for (const gate of gates.slice(0, 3)) gate.resolve();
    await using first = (await Dataset.load(path, SOON)).iterator();
    for (let i = 0; i < 3; i++) await first.next();

    // Only in virtual time is this short.
    const { node } = await Dataset.load(path, { wait: { pollMs: 100, timeoutMs: 1_000 } });
    const opened: string[] = [];
    const host = withVirtualTime(installedHost());
    const files = {
      list: (pattern: string) => host.files.list(pattern),
      open: (name: string) => (opened.push(name), host.files.open(name)),
    };
    await using second = openIterator(node, {
      host: Object.create(host, { files: { value: files } }),
    });
    for (let i = 0; i < 3; i++) await second.next();
    await assertRejects(() => second.next(), LeatError, "waited for");
    assertEquals(opened.filter((name) => name.endsWith(".tfrecord")).length, 3);
    gates[3]!.resolve();
    await saving;
  });
});

Deno.test("load that waits ends when its iterator does", async () => {
  await inFolder(async (path) => {
    const iterator = (await Dataset.load(`${path}/never`, { wait: true })).iterator();
    const pending = iterator.next();
    await iterator.return();
    assertEquals((await pending).done, true);
  });
});

Deno.test("load checks its option wait", async () => {
  const refused = async (options: unknown) => {
    const load = () => Dataset.load("x", options as Parameters<typeof Dataset.load>[1]);
    assertEquals((await assertRejects(load, LeatError)).code, "invalid_argument");
  };
  await refused({ wait: { pollMs: 0 } });
  await refused({ wait: { pollMs: 2 ** 31 } }); // a timer would fire at once
  await refused({ wait: { pollMS: 5 } });
  await refused({ wait: 1 });
  await refused({ wait: true, readerFunc: (shards: Dataset<unknown>) => shards });
});
