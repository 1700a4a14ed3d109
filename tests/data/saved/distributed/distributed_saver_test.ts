/** Workers of a distributed save without a service: each kind of work, and storage that fails. */
import { Dataset, type Host, LeatError } from "../../../../mod.ts";
import { openIterator } from "../../../../data/dataset_iterator.ts";
import { installedHost } from "../../../../data/host.ts";
import { TextLinesNode } from "../../../../data/sources/text_lines.ts";
import { DistributedSaver } from "../../../../data/saved/distributed/distributed_saver.ts";
import type {
  Begun,
  RunReport,
  SaveWork,
  WrittenRun,
} from "../../../../data/saved/distributed/work.ts";
import { assert, assertEquals, assertRejects } from "../../../assert.ts";
import { inFolder, namesIn } from "../../../lib/temp_folder.ts";

const OWNER = "cluster/1";
const DISK_FULL = new LeatError("resource_exhausted", "disk full").toWire();

function writerOf(
  folder: string,
  dataset: Dataset<unknown>,
  host: Host = installedHost(),
  overwrite = false,
  chunkBytesMax = 1 << 20,
) {
  const settings = {
    folder,
    overwrite,
    fingerprint: dataset.fingerprint(),
    chunkBytesMax,
  };
  return new DistributedSaver(dataset.node, settings, 0n, host);
}

/** Some of the splits of a save that has begun. */
function run({ id, table }: Begun, first: number, count: number): SaveWork {
  const splits = table[0]!.map((split, index) => ({ ...split, index }));
  return { work: "run", owner: OWNER, id, first, splits: splits.slice(first, first + count) };
}

function entry({ id, table }: Begun, number: number, runs: WrittenRun[], owner = OWNER): SaveWork {
  const { first, count } = runs.at(-1)!;
  const upTo = first + count;
  return { work: "entry", owner, id, number, runs, upTo, isLast: upTo === table[0]!.length };
}

/** This machine with a disk of limited size. */
function withDiskOf(bytesMax: number): Host {
  let left = bytesMax;
  const onAppend = (path: string, bytes: Uint8Array) => {
    left -= bytes.length;
    if (left < 0) throw new LeatError("resource_exhausted", `Cannot write ${path}: disk full`);
  };
  return withFiles(installedHost(), { onAppend });
}

interface FileEvents {
  readonly onAppend?: (path: string, bytes: Uint8Array) => void;
  readonly beforeCommit?: (path: string) => void | Promise<void>;
  readonly afterCommit?: (path: string) => void;
  /** Called when another writer has begun the file. */
  readonly onTaken?: (path: string) => void;
}

/** This machine with hooks for writes. */
function withFiles(host: Host, { onAppend, beforeCommit, afterCommit, onTaken }: FileEvents): Host {
  const newFiles = {
    remove: (path: string) => host.newFiles.remove(path),
    create: async (path: string) => {
      const file = await host.newFiles.create(path).catch((error) => {
        onTaken?.(path);
        throw error;
      });
      return {
        append: (bytes: Uint8Array) => {
          onAppend?.(path, bytes);
          return file.append(bytes);
        },
        commit: async () => {
          await beforeCommit?.(path);
          await file.commit();
          afterCommit?.(path);
        },
        abandon: () => file.abandon(),
      };
    },
  };
  return Object.create(host, {
    newFiles: { value: newFiles },
    files: { value: host.files },
    nowMs: { value: () => host.nowMs() },
    sleep: { value: (ms: number, signal?: AbortSignal) => host.sleep(ms, signal) },
    yield: { value: () => host.yield() },
    entropy64: { value: () => host.entropy64() },
  });
}

Deno.test("DistributedSaver begins a new file after chunkBytesMax, also for batches of several splits", async () => {
  // Each split of the second one has one row, which waits for others to fill its batch.
  const numbers = Dataset.range(40);
  for (const dataset of [numbers.batch(4), numbers.filter((x) => x % 3 > 0).batch(4)]) {
    await inFolder(async (folder) => {
      const writer = writerOf(folder, dataset, installedHost(), false, 1);
      const begun = await writer.do({ work: "begin", owner: OWNER }) as Begun;
      const count = begun.table[0]!.length;
      const whole = { first: 0, count, ...await writer.do(run(begun, 0, count)) as RunReport };
      await writer.do(entry(begun, 0, [whole]));
      const saved = await Array.fromAsync(await Dataset.load(folder));
      assertEquals(saved, await Array.fromAsync(dataset as Dataset<unknown>));
      const files = (await namesIn(folder)).filter((name) => name.endsWith(".tfrecord"));
      assertEquals(files.length, saved.length);
    });
  }
});

Deno.test("a full disk ends a run, which leaves nothing, and another worker continues", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(8).map((x) => new Uint8Array(1 << 20).fill(x));
    const broken = writerOf(folder, dataset, withDiskOf(3.5 * 2 ** 20));
    const begun = await broken.do({ work: "begin", owner: OWNER }) as Begun;
    const first = { first: 0, count: 2, ...await broken.do(run(begun, 0, 2)) as RunReport };
    const before = await namesIn(folder);
    const error = await assertRejects(() => broken.do(run(begun, 2, 4)), LeatError);
    assertEquals(error.code, "resource_exhausted");
    assert(error.message.includes(folder), error.message);
    assertEquals(await namesIn(folder), before);

    const writer = writerOf(folder, dataset);
    const again = await writer.do({ work: "begin", owner: "cluster/2" }) as Begun;
    assertEquals([again.id, again.runs.map(({ attempt }) => attempt), again.elements], [
      begun.id,
      [first.attempt],
      2,
    ]);
    const rest = { first: 2, count: 6, ...await writer.do(run(begun, 2, 6)) as RunReport };
    await writer.do(entry(begun, 0, [first, rest], "cluster/2"));
    const loaded = await Dataset.load<Uint8Array>(folder);
    assertEquals((await Array.fromAsync(loaded)).map((x) => x[0]), [0, 1, 2, 3, 4, 5, 6, 7]);
  });
});

Deno.test("DistributedSaver.do: a run whose note is there although its commit failed keeps its files, and counts when the save is resumed", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(40).filter((x) => x % 3 > 0).batch(4).map((x) => x.toArray());
    const afterCommit = (path: string) => {
      if (path.endsWith(".run")) throw new LeatError("unavailable", `Cannot write ${path}`);
    };
    const broken = writerOf(folder, dataset, withFiles(installedHost(), { afterCommit }));
    const begun = await broken.do({ work: "begin", owner: OWNER }) as Begun;
    const error = await assertRejects(() => broken.do(run(begun, 0, 10)), LeatError);
    assertEquals(error.code, "unavailable");

    const writer = writerOf(folder, dataset);
    const again = await writer.do({ work: "begin", owner: "cluster/2" }) as Begun;
    assertEquals(again.runs.map(({ first, count }) => [first, count]), [[0, 10]]);
    const last = { first: 10, count: 30, ...await writer.do(run(again, 10, 30)) as RunReport };
    await writer.do(entry(again, 0, [...again.runs, last], "cluster/2"));
    const loaded = await Dataset.load<number[]>(folder);
    assertEquals(await Array.fromAsync(loaded), await Array.fromAsync(dataset));
  });
});

Deno.test("work that is done twice counts once", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(40).filter((x) => x % 3 > 0).batch(4).map((x) => x.toArray());
    const [one, other] = [writerOf(folder, dataset), writerOf(folder, dataset)];
    const begun = await one.do({ work: "begin", owner: OWNER }) as Begun;
    assertEquals((await other.do({ work: "begin", owner: OWNER }) as Begun).id, begun.id);
    const lost = await one.do(run(begun, 0, 10)) as RunReport;
    const first = { first: 0, count: 10, ...await other.do(run(begun, 0, 10)) as RunReport };
    assert(lost.attempt !== first.attempt);
    for (const writer of [one, other]) await writer.do(entry(begun, 0, [first]));
    const last = { first: 10, count: 30, ...await one.do(run(begun, 10, 30)) as RunReport };
    for (const writer of [one, other]) await writer.do(entry(begun, 1, [last]));
    const names = await namesIn(folder);
    assert(names.every((name) => name === "DONE" || name.endsWith(".tfrecord")), `${names}`);
    const loaded = await Dataset.load<number[]>(folder);
    assertEquals(await Array.fromAsync(loaded), await Array.fromAsync(dataset));
    const code = await assertRejects(() => one.do({ work: "begin", owner: OWNER }), LeatError);
    assertEquals(code.code, "already_exists");
  });
});

Deno.test("concurrent repetitions of work count once, and the first entry stays", async () => {
  const dataset = Dataset.range(40).filter((x) => x % 3 > 0).batch(4).map((x) => x.toArray());
  for (let round = 0; round < 5; round++) {
    await inFolder(async (folder) => {
      const writers = [writerOf(folder, dataset), writerOf(folder, dataset)];
      const both = <T>(work: SaveWork) =>
        Promise.all(writers.map((writer) => writer.do(work) as Promise<T>));
      const [begun, again] = await both<Begun>({ work: "begin", owner: OWNER });
      assertEquals(again!.id, begun!.id);
      const half = Math.floor(begun!.table[0]!.length / 2);
      const count = begun!.table[0]!.length - half;
      const [early] = await both<RunReport>(run(begun!, 0, half));
      const [late] = await both<RunReport>(run(begun!, half, count));
      await both(entry(begun!, 0, [{ first: 0, count: half, ...early! }]));
      const growing = await Dataset.load<number[]>(folder, {
        wait: { pollMs: 1, timeoutMs: 60_000 },
      });
      const reader = growing[Symbol.asyncIterator]();
      const first = await reader.next();
      await both(entry(begun!, 1, [{ first: half, count, ...late! }]));
      const found = first.done ? [] : [first.value];
      for (let next = await reader.next(); !next.done; next = await reader.next()) {
        found.push(next.value);
      }
      const wanted = Array.from({ length: 40 }, (_, x) => x).filter((x) => x % 3 > 0);
      assertEquals(found.flat(), wanted);
      assertEquals((await Array.fromAsync(await Dataset.load<number[]>(folder))).flat(), wanted);
    });
  }
});

Deno.test("an entry that fails at an unreadable note removes the batches that it had joined", async () => {
  await inFolder(async (path) => {
    const [folder, lines] = [`${path}/saved`, `${path}/lines`];
    await Deno.writeTextFile(lines, "ab\n".repeat(12));
    // Four splits of three lines: a batch, and a line for a joined batch.
    const splits = new Dataset<string>(new TextLinesNode(lines, { partBytes: 9 }));
    const dataset = splits.batch(2).map((x) => x.toArray());
    const writer = writerOf(folder, dataset);
    const begun = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    assertEquals(begun.table[0]!.length, 4);
    const first = { first: 0, count: 3, ...await writer.do(run(begun, 0, 3)) as RunReport };
    const before = await namesIn(folder);
    const last = { first: 3, count: 1, ...await writer.do(run(begun, 3, 1)) as RunReport };
    const [note] = (await namesIn(folder)).filter((name) =>
      name.endsWith(".run") && !before.includes(name)
    );
    const contents = await Deno.readFile(`${folder}/${note}`);
    await Deno.remove(`${folder}/${note}`);
    const left = await namesIn(folder);
    const entering = () => writer.do(entry(begun, 0, [first, last]));
    assertEquals((await assertRejects(entering, LeatError)).code, "data_loss");
    assertEquals(await namesIn(folder), left);
    await Deno.writeFile(`${folder}/${note}`, contents);
    await entering();
    assertEquals((await Array.fromAsync(await Dataset.load(folder))).flat(), Array(12).fill("ab"));
  });
});

Deno.test("a save that was taken over enters nothing more", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const [one, other] = [writerOf(folder, dataset), writerOf(folder, dataset)];
    const begun = await one.do({ work: "begin", owner: OWNER }) as Begun;
    const whole = { first: 0, count: 4, ...await one.do(run(begun, 0, 4)) as RunReport };
    await other.do({ work: "begin", owner: "cluster/2" });
    const late = () => one.do(entry(begun, 0, [whole]));
    assertEquals((await assertRejects(late, LeatError)).code, "aborted");
    await other.do(entry(begun, 0, [whole], "cluster/2"));
    assertEquals(await Array.fromAsync(await Dataset.load(folder)), [0, 1, 2, 3]);
  });
});

Deno.test("a save that is taken over while an entry is committed continues after that entry", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const host = installedHost();
    const wants = Promise.withResolvers<unknown>();
    const other = writerOf(
      folder,
      dataset,
      withFiles(host, { onTaken: () => wants.resolve(null) }),
    );
    let taken: Promise<Begun> | undefined;
    const beforeCommit = async (path: string) => {
      if (!path.endsWith(".ledger")) return;
      taken ??= other.do({ work: "begin", owner: "cluster/2" }) as Promise<Begun>;
      await Promise.race([taken, wants.promise]);
    };
    const one = writerOf(folder, dataset, withFiles(host, { beforeCommit }));
    const begun = await one.do({ work: "begin", owner: OWNER }) as Begun;
    const half = { first: 0, count: 2, ...await one.do(run(begun, 0, 2)) as RunReport };
    await one.do(entry(begun, 0, [half]));
    const { id, entries, upTo } = await taken!;
    assertEquals([id, entries, upTo], [begun.id, 1, 2]);
  });
});

Deno.test("a save that is taken over between its last entry and its manifest keeps that entry for readers", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const beforeCommit = (path: string) => {
      if (path.endsWith("/DONE")) throw new LeatError("resource_exhausted", "disk full");
    };
    const one = writerOf(folder, dataset, withFiles(installedHost(), { beforeCommit }));
    const begun = await one.do({ work: "begin", owner: OWNER }) as Begun;
    // A worker that was declared dead writes fewer splits of the same run.
    await one.do(run(begun, 0, 1));
    const early = { first: 0, count: 2, ...await one.do(run(begun, 0, 2)) as RunReport };
    const late = { first: 2, count: 2, ...await one.do(run(begun, 2, 2)) as RunReport };
    const growing = await Dataset.load<number>(folder, { wait: true });
    await assertRejects(() => one.do(entry(begun, 0, [early, late])), LeatError, "disk full");

    const other = writerOf(folder, dataset);
    const again = await other.do({ work: "begin", owner: "cluster/2" }) as Begun;
    const { entries, upTo, runs, elements } = again;
    assertEquals([entries, upTo, runs, elements], [0, 4, [], 4]);
    const reader = growing[Symbol.asyncIterator]();
    const found = [(await reader.next()).value];
    const end = { work: "entry", owner: "cluster/2", id: begun.id, number: 0, runs, upTo } as const;
    assertEquals(await other.do({ ...end, isLast: true }), { elements: 0, sizeBytes: 0 });
    for (let next = await reader.next(); !next.done; next = await reader.next()) {
      found.push(next.value);
    }
    assertEquals(found, [0, 1, 2, 3]);
    assertEquals(await Array.fromAsync(await Dataset.load<number>(folder)), [0, 1, 2, 3]);
  });
});

Deno.test("a late beginning for a lost owner does not take over a save", async () => {
  await inFolder(async (folder) => {
    const [path, file] = [`${folder}/saved`, `${folder}/numbers.txt`];
    await Deno.writeTextFile(file, "0\n1\n");
    const dataset = Dataset.textLines(file);
    const host = installedHost();
    const listing = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    const files: Host["files"] = {
      open: async (path, signal) => {
        if (path === file) {
          asked.resolve();
          await listing.promise;
        }
        return await host.files.open(path, signal);
      },
      list: (pattern, signal) => host.files.list(pattern, signal),
    };
    const slow = Object.create(withFiles(host, {}), { files: { value: files } });
    const late = writerOf(path, dataset, slow).do({ work: "begin", owner: OWNER });
    await asked.promise;
    const begun = await writerOf(path, dataset).do({ work: "begin", owner: "cluster/2" }) as Begun;
    listing.resolve();
    const error = await assertRejects(() => late, LeatError);
    assertEquals(error.code, "aborted", "it is asked for again where somebody is there to");
    const all = { ...run(begun, 0, begun.table[0]!.length), owner: "cluster/2" };
    const writer = writerOf(path, dataset);
    const count = begun.table[0]!.length;
    const whole = { first: 0, count, ...await writer.do(all) as RunReport };
    await writer.do(entry(begun, 0, [whole], "cluster/2"));
    assertEquals(await Array.fromAsync(await Dataset.load(path)), ["0", "1"]);
    // A later owner takes it over.
    await assertRejects(
      () => writer.do({ work: "begin", owner: OWNER }),
      LeatError,
      "holds a saved",
    );
  });
});

Deno.test("an earlier beginning of the same service does not take over a later save", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const writer = writerOf(folder, dataset);
    const begun = await writer.do({ work: "begin", owner: "cluster/10" }) as Begun;
    for (const owner of ["cluster/9", "cluster/2"]) {
      const error = await assertRejects(() => writer.do({ work: "begin", owner }), LeatError);
      assertEquals(error.code, "failed_precondition", owner);
    }
    for (const owner of ["cluster/10", "cluster/11", "other/1"]) {
      assertEquals((await writer.do({ work: "begin", owner }) as Begun).id, begun.id, owner);
    }
  });
});

Deno.test("a beginning that comes after its save was finished begins nothing, though it may overwrite", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const writer = writerOf(folder, dataset, installedHost(), true);
    const begin = (owner: string) => writer.do({ work: "begin", owner });
    const begun = await begin("cluster/2") as Begun;
    const count = begun.table[0]!.length;
    const all = { ...run(begun, 0, count), owner: "cluster/2" };
    const whole = { first: 0, count, ...await writer.do(all) as RunReport };
    await writer.do(entry(begun, 0, [whole], "cluster/2"));
    const saved = await namesIn(folder);
    for (const owner of ["cluster/2", "cluster/1"]) {
      const error = await assertRejects(() => begin(owner), LeatError, "has finished this save");
      assertEquals(error.code, "failed_precondition", owner);
      assertEquals(await namesIn(folder), saved, owner);
    }
    for (const owner of ["other/1", "cluster/3"]) {
      assert((await begin(owner) as Begun).id !== begun.id, owner);
    }
  });
});

Deno.test("a writer that fails after its work was reassigned ends no reading", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const begun = await writerOf(folder, dataset).do({ work: "begin", owner: OWNER }) as Begun;
    const onAppend = (path: string) => {
      if (path.endsWith(".tfrecord")) throw new LeatError("resource_exhausted", "disk full");
    };
    const late = writerOf(folder, dataset, withFiles(installedHost(), { onAppend }));
    await assertRejects(() => late.do(run(begun, 0, 4)), LeatError, "disk full");
    const growing = await Dataset.load<number>(folder, { wait: { pollMs: 1 } });
    const reading = Array.fromAsync(growing);
    const writer = writerOf(folder, dataset);
    const whole = { first: 0, count: 4, ...await writer.do(run(begun, 0, 4)) as RunReport };
    await writer.do(entry(begun, 0, [whole]));
    assertEquals(await reading, [0, 1, 2, 3]);
    // It also leaves nothing if it reaches its end.
    await writer.do(run(begun, 0, 4));
    const names = await namesIn(folder);
    assertEquals(names.filter((name) => name !== "DONE").length, 1, `${names}`);
  });
});

Deno.test("a run that ends while its folder is cleaned up leaves nothing", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const host = installedHost();
    const late = writerOf(folder, dataset);
    let onListed = () => Promise.resolve<unknown>(undefined);
    const files: Host["files"] = {
      open: (path, signal) => host.files.open(path, signal),
      list: async (pattern, signal) => {
        const found = await host.files.list(pattern, signal);
        await onListed();
        return found;
      },
    };
    const tidying = Object.create(withFiles(host, {}), { files: { value: files } });
    const one = writerOf(folder, dataset, tidying);
    const begun = await one.do({ work: "begin", owner: OWNER }) as Begun;
    const whole = { first: 0, count: 4, ...await one.do(run(begun, 0, 4)) as RunReport };
    // Files from here on are in no list of files to remove.
    onListed = () => late.do(run(begun, 0, 4));
    await one.do(entry(begun, 0, [whole]));
    const names = await namesIn(folder);
    assertEquals(names.filter((name) => name !== "DONE").length, 1, `${names}`);
    assertEquals(await Array.fromAsync(await Dataset.load<number>(folder)), [0, 1, 2, 3]);
  });
});

Deno.test("readers get the failure of a save until the save is resumed", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const writer = writerOf(folder, dataset);
    const { id } = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    await writer.do({ work: "failure", owner: "cluster/0", id, error: DISK_FULL });
    const growing = await Dataset.load<number>(folder, { wait: { pollMs: 1 } });
    const iterator = growing.iterator();
    const failed = assertRejects(() => iterator.next(), LeatError, "disk full");
    await writer.do({ work: "failure", owner: OWNER, id, error: DISK_FULL });
    await failed;
    const afterCommit = () => assert(false, "another worker has written the failure");
    const other = writerOf(folder, dataset, withFiles(installedHost(), { afterCommit }));
    await other.do({ work: "failure", owner: OWNER, id, error: DISK_FULL });
    const begun = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    const whole = { first: 0, count: 4, ...await writer.do(run(begun, 0, 4)) as RunReport };
    await writer.do(entry(begun, 0, [whole]));
    assertEquals(await Array.fromAsync(growing), [0, 1, 2, 3]);
  });
});

/** A clock that moves only while a reader sleeps, and a promise that settles when one does. */
function withSleeps(): { host: Host; asleep: Promise<void> } {
  const { promise: asleep, resolve } = Promise.withResolvers<void>();
  const machine = installedHost();
  let nowMs = 0;
  const sleep = (ms: number) => {
    nowMs += ms;
    resolve();
    return machine.sleep(1);
  };
  const host = Object.create(withFiles(machine, {}), {
    nowMs: { value: () => nowMs },
    sleep: { value: sleep },
  });
  return { host, asleep };
}

/** Reads a folder to its end, and returns when the reader waits for its writer. */
async function readWaiting({ node }: Dataset<number>, place?: Uint8Array) {
  const { host, asleep } = withSleeps();
  const read = async () => {
    await using iterator = openIterator(node, { host });
    if (place !== undefined) await iterator.restore(place);
    return await Array.fromAsync(iterator);
  };
  const reading = read();
  await Promise.race([asleep, reading]);
  return { reading };
}

Deno.test("load with wait reads a save that had failed before its first look when it is resumed, new or restored", async () => {
  await inFolder(async (folder) => {
    const writer = writerOf(folder, Dataset.range(4));
    const begun = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    const half = { first: 0, count: 2, ...await writer.do(run(begun, 0, 2)) as RunReport };
    await writer.do(entry(begun, 0, [half]));
    const growing = await Dataset.load<number>(folder, { wait: true });
    await using iterator = growing.iterator();
    await iterator.next();
    const place = await iterator.save();
    await writer.do({ work: "failure", owner: OWNER, id: begun.id, error: DISK_FULL });

    const readers = [await readWaiting(growing), await readWaiting(growing, place)];
    const again = await writer.do({ work: "begin", owner: "cluster/2" }) as Begun;
    const rest = { first: 2, count: 2, ...await writer.do(run(again, 2, 2)) as RunReport };
    await writer.do(entry(again, 1, [rest], "cluster/2"));
    const [all, restored] = await Promise.all(readers.map(({ reading }) => reading));
    assertEquals([all, restored], [[0, 1, 2, 3], [1, 2, 3]]);
  });
});

Deno.test("load with wait fails if the save that it saw failed is resumed and fails again", async () => {
  await inFolder(async (folder) => {
    const writer = writerOf(folder, Dataset.range(4));
    const { id } = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    await writer.do({ work: "failure", owner: OWNER, id, error: DISK_FULL });
    const { reading } = await readWaiting(await Dataset.load<number>(folder, { wait: true }));
    const failed = assertRejects(() => reading, LeatError, "disk full");
    await writer.do({ work: "begin", owner: "cluster/2" });
    await writer.do({ work: "failure", owner: "cluster/2", id, error: DISK_FULL });
    assertEquals((await failed).code, "resource_exhausted");
  });
});

Deno.test("load with wait times out with the failure of a save that nobody resumes", async () => {
  await inFolder(async (folder) => {
    const writer = writerOf(folder, Dataset.range(4));
    const { id } = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    await writer.do({ work: "failure", owner: OWNER, id, error: DISK_FULL });
    const growing = await Dataset.load<number>(folder, { wait: { timeoutMs: 1_000 } });
    const { reading } = await readWaiting(growing);
    const error = await assertRejects(() => reading, LeatError, "nobody continued the failed save");
    assertEquals(error.code, "deadline_exceeded");
    assert(error.message.endsWith("disk full"), error.message);
  });
});

Deno.test("save() is refused next to an unfinished distributed save, and replaces it with overwrite", async () => {
  await inFolder(async (folder) => {
    const dataset = Dataset.range(4);
    const begun = await writerOf(folder, dataset).do({ work: "begin", owner: OWNER }) as Begun;
    await writerOf(folder, dataset).do(run(begun, 0, 1));
    const error = await assertRejects(() => dataset.save(folder), LeatError);
    assertEquals(error.code, "already_exists");
    await dataset.save(folder, { overwrite: true });
    const names = await namesIn(folder);
    assertEquals(names.filter((name) => !name.endsWith(".tfrecord")), ["DONE"]);
    assertEquals(await Array.fromAsync(await Dataset.load(folder)), [0, 1, 2, 3]);
  });
});

/** This machine, with other functions for files. */
function withReading(files: Partial<Host["files"]>): Host {
  const host = installedHost();
  const { open, list } = host.files;
  const all = { open: open.bind(host.files), list: list.bind(host.files), ...files };
  return Object.create(withFiles(host, {}), { files: { value: all } });
}

Deno.test("DistributedSaver lists the files of a source once for all splits of a run", async () => {
  await inFolder(async (path) => {
    for (let i = 0; i < 9; i++) await Deno.writeTextFile(`${path}/${i}.txt`, `${i}\n`);
    let lists = 0;
    const list = (pattern: string, signal?: AbortSignal) => {
      if (pattern.endsWith(".txt")) lists++;
      return installedHost().files.list(pattern, signal);
    };
    const dataset = Dataset.textLines(Dataset.listFiles(`${path}/*.txt`, { shuffle: false }));
    const writer = writerOf(`${path}/saved`, dataset, withReading({ list }));
    const begun = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    lists = 0;
    const first = { first: 0, count: 6, ...await writer.do(run(begun, 0, 6)) as RunReport };
    const last = { first: 6, count: 3, ...await writer.do(run(begun, 6, 3)) as RunReport };
    assertEquals(lists, 1);
    await writer.do(entry(begun, 0, [first, last]));
    const loaded = await Array.fromAsync(await Dataset.load<string>(`${path}/saved`));
    assertEquals(loaded.join(""), "012345678");
  });
});

Deno.test("an entry reads the file of a run's left-over rows once, and the run reports its size", async () => {
  await inFolder(async (path) => {
    const [folder, lines] = [`${path}/saved`, `${path}/lines`];
    await Deno.writeTextFile(lines, "ab\n".repeat(50));
    // Fifty splits of a line each: every element is a left-over row.
    const splits = new Dataset<string>(new TextLinesNode(lines, { partBytes: 3 }));
    const dataset = splits.batch(4).map((x) => x.toArray());
    const opened: string[] = [];
    const open = (path: string, signal?: AbortSignal) => {
      if (path.endsWith(".rest")) opened.push(path);
      return installedHost().files.open(path, signal);
    };
    const writer = writerOf(folder, dataset, withReading({ open }));
    const begun = await writer.do({ work: "begin", owner: OWNER }) as Begun;
    assertEquals(begun.table[0]!.length, 50);
    const runs: WrittenRun[] = [];
    for (const [first, count] of [[0, 10], [10, 20], [30, 20]] as const) {
      const report = await writer.do(run(begun, first, count)) as RunReport;
      runs.push({ first, count, attempt: report.attempt });
      const [file] = (await namesIn(folder)).filter((name) =>
        name.includes(report.attempt) && name.endsWith(".rest")
      );
      const { size: restBytes } = await Deno.stat(`${folder}/${file}`);
      assertEquals([report.elements, report.sizeBytes, report.restBytes], [0, 0, restBytes]);
    }
    await writer.do(entry(begun, 0, runs.slice(0, 1)));
    assertEquals(opened.length, 1);
    // Two rows of the first run were carried over.
    await writer.do(entry(begun, 1, runs.slice(1)));
    assertEquals(opened.length, 1 + 3);
    const loaded = await Array.fromAsync(await Dataset.load<string[]>(folder));
    assertEquals(loaded.map((batch) => batch.length), [...Array(12).fill(4), 2]);
  });
});

/** This machine, where a file cannot be opened once. */
function failingOnce(path: string): Host {
  const host = installedHost();
  let isAway = true;
  const open = (opened: string, signal?: AbortSignal) => {
    if (opened !== path || !isAway) return host.files.open(opened, signal);
    isAway = false;
    return Promise.reject(new LeatError("unavailable", "the storage is away"));
  };
  return withReading({ open });
}

Deno.test("begin fails if the storage cannot answer, and resumes the same save when it can", async () => {
  await inFolder(async (path) => {
    const lines = `${path}/lines`;
    await Deno.writeTextFile(lines, "one\ntwo\nthree\nfour\n");
    const dataset = new Dataset<string>(new TextLinesNode(lines, { partBytes: 5 }));
    const saver = writerOf(`${path}/saved`, dataset);
    const begun = await saver.do({ work: "begin", owner: OWNER }) as Begun;
    await saver.do(run(begun, 0, 2));
    const other = writerOf(`${path}/saved`, dataset, failingOnce(lines));
    const beginAgain = () => other.do({ work: "begin", owner: "cluster/2" }) as Promise<Begun>;
    assertEquals((await assertRejects(beginAgain, LeatError)).code, "unavailable");
    const { id, runs } = await beginAgain();
    assertEquals([id, runs.length], [begun.id, 1]);
  });
});
