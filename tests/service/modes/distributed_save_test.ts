/** `distributedSave`: the workers of a service write a dataset together. */
import {
  Dataset,
  distributedSave,
  type DistributedSaveProgress,
  LeatError,
  udf,
} from "../../../mod.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { testInline, testOnEach, upTo } from "../lib/carriers.ts";
import { inFolder, namesIn } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

/** The files of a folder besides the manifest and the chunks that it lists. */
async function leftIn(folder: string): Promise<string[]> {
  const names = await namesIn(folder);
  return names.filter((name) => name !== "DONE" && !/\.tfrecord(\.gz)?$/.test(name));
}

async function loaded<T>(path: string): Promise<T[]> {
  return await Array.fromAsync(await Dataset.load<T>(path));
}

testOnEach(
  "distributedSave writes the DETERMINISTIC stream, whatever the number of workers",
  async (start) => {
    await inFolder(async (folder) => {
      const dataset = Dataset.range(1000).filter((x) => x % 3 !== 0).shuffle(20).batch(16)
        .map((batch) => batch.toArray());
      let wanted: unknown;
      for (const workers of [1, 3]) {
        await using cluster = await start({ workers });
        wanted ??= await Array.fromAsync(
          dataset.distribute({ service: cluster, processingMode: "DETERMINISTIC" }),
        );
        const path = `${folder}/${workers}`;
        const told: DistributedSaveProgress[] = [];
        const onProgress = (progress: DistributedSaveProgress) => told.push(progress);
        await distributedSave(dataset, path, cluster, { onProgress });
        assertEquals(await loaded(path), wanted);
        assertEquals(await leftIn(path), []);
        const { splitsDone, splitsTotal, elements } = told.at(-1)!;
        assertEquals([splitsDone, elements], [splitsTotal, (wanted as unknown[]).length]);
      }
    });
  },
);

const GATE = import.meta.resolve("../lib/fixture_gate.ts");
const held = udf<typeof import("../lib/fixture_gate.ts").held>(GATE, "held");
const barred = udf<typeof import("../lib/fixture_gate.ts").barred>(GATE, "barred");

/** 400 numbers in batches of 8; those from 200 on come when the file `gate` exists. */
function gated(gate: string, by: typeof held | typeof barred = held) {
  const numbers: Dataset<number> = Dataset.range(400).map(by as typeof held, {
    captures: { gate, from: 200 },
  });
  return numbers.filter((x) => x % 10 !== 0).batch(8).map((batch) => batch.toArray() as number[]);
}

/** The numbers of {@linkcode gated}, in any batches. */
const WANTED = upTo(400).filter((x) => x % 10 !== 0);

async function open(gate: string): Promise<void> {
  await Deno.writeTextFile(gate, "");
}

/** Resolves when a part of the folder can be read. */
async function begun(path: string): Promise<void> {
  await until(async () => {
    const names = await namesIn(path).catch(() => []);
    return names.some((name) => name.endsWith(".ledger"));
  }, 2);
}

testOnEach(
  "a distributedSave whose worker is killed has each element once, in order",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 3, workerTimeoutMs: 500 });
      const saving = distributedSave(gated(gate), path, cluster);
      await begun(path);
      await cluster.stopWorker(0);
      await cluster.stopWorker(1);
      await cluster.restartWorker(1);
      await open(gate);
      await saving;
      assertEquals((await loaded<number[]>(path)).flat(), WANTED);
      assertEquals(await leftIn(path), [], "what dead workers have left is removed");
    });
  },
);

testInline(
  "a worker that is stopped gracefully finishes its part of a distributedSave",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 2 });
      const saving = distributedSave(gated(gate), path, cluster);
      await begun(path);
      const stopping = cluster.stopWorker(0, { graceful: true });
      await open(gate);
      await Promise.all([saving, stopping]);
      assertEquals((await loaded<number[]>(path)).flat(), WANTED);
      assertEquals(await leftIn(path), []);
    });
  },
);

testInline(
  "a distributedSave goes on when the dispatcher restarts, with its journal and without",
  async (start) => {
    for (const keepsJournal of [true, false]) {
      await inFolder(async (folder) => {
        const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
        const journal = keepsJournal ? { journal: `${folder}/journal` } : {};
        await using cluster = await start({ workers: 2, workerTimeoutMs: 500, ...journal });
        const saving = distributedSave(gated(gate), path, cluster);
        await begun(path);
        await cluster.stopDispatcher();
        await cluster.restartDispatcher();
        await open(gate);
        await saving;
        assertEquals((await loaded<number[]>(path)).flat(), WANTED);
        assertEquals(await leftIn(path), []);
      });
    }
  },
);

testInline(
  "a distributedSave whose folder another client took while the dispatcher was down is not reported as saved",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 1, workerTimeoutMs: 500 });
      const told = Promise.withResolvers<unknown>();
      const saving = distributedSave(gated(gate), path, cluster, { onProgress: told.resolve })
        .then(() => "saved", (error) => LeatError.from(error).code);
      await told.promise;
      await cluster.stopDispatcher();
      const [taken, over] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const alone = Dataset.range(3).map(async (x) => {
        taken.resolve();
        await over.promise;
        return x;
      }).save(path, { overwrite: true });
      try {
        // A service that checks while the folder is taken answers `aborted` instead.
        await taken.promise;
        await cluster.restartDispatcher();
        assertEquals(await saving, "already_exists");
      } finally {
        over.resolve();
        await alone;
      }
      await open(gate);
      assertEquals(await loaded(path), upTo(3));
    });
  },
);

testInline("distributedSave goes on where it was after everything has died", async (start) => {
  await inFolder(async (folder) => {
    const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
    {
      await using cluster = await start({ workers: 2 });
      const lost = distributedSave(gated(gate), path, cluster).then(() => "saved", () => "lost");
      await begun(path);
      await cluster.close();
      assertEquals(await lost, "lost");
    }
    const error = await assertRejects(() => Dataset.load(path), LeatError);
    assert(error.message.includes("call distributedSave() again"), error.message);
    await using cluster = await start({ workers: 1 });
    const other = () => distributedSave(gated(gate).take(3), path, cluster);
    assertEquals((await assertRejects(other, LeatError)).code, "failed_precondition");
    const told: DistributedSaveProgress[] = [];
    const saving = distributedSave(gated(gate), path, cluster, {
      onProgress: (progress) => told.push(progress),
    });
    await until(() => told.length > 0, 2);
    assert(told[0]!.splitsDone > 0, JSON.stringify(told));
    await open(gate);
    await saving;
    assertEquals((await loaded<number[]>(path)).flat(), WANTED);
    assertEquals(await leftIn(path), []);
  });
});

testInline(
  "a distributedSave that fails names the worker, tells who waits, and can be gone on with",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 2 });
      const dataset = gated(gate, barred);
      const waiting = Dataset.load(path, { wait: { pollMs: 1 } })
        .then((growing) => assertRejects(() => Array.fromAsync(growing), LeatError));
      const save = () => distributedSave(dataset, path, cluster);
      const error = await assertRejects(save, LeatError);
      assert(/Worker "local-\d+-worker-\d" could not save/.test(error.message), error.message);
      for (const part of [path, "the gate is shut", "call distributedSave() again"]) {
        assert(error.message.includes(part), error.message);
      }
      const [told, alone] = [
        await waiting,
        await assertRejects(() => Dataset.load(path), LeatError),
      ];
      for (const { message } of [told, alone]) {
        const end = "the gate is shut. What was written stays; call distributedSave() again to " +
          "continue.";
        assert(message.endsWith(end), message);
      }
      await open(gate);
      await save();
      assertEquals((await loaded<number[]>(path)).flat(), WANTED);
    });
  },
);

testInline(
  "load gives what a distributedSave has written, in order, while it goes on",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 2 });
      const growing = await Dataset.load<number[]>(path, { wait: { pollMs: 1 } });
      const iterator = growing.iterator();
      const saving = distributedSave(gated(gate), path, cluster);
      const first = await iterator.next();
      assertEquals(await leftIn(path).then((names) => names.includes("SAVING")), true);
      await open(gate);
      const came = [first.value!, ...await Array.fromAsync(iterator)];
      await saving;
      assertEquals(came, await loaded(path));
    });
  },
);

testInline(
  "distributedSave refuses a saved dataset, one being saved, an endless one, and unknown options",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 1 });
      const codeOf = async (save: () => Promise<void>) =>
        (await assertRejects(save, LeatError)).code;
      const small = Dataset.range(10);
      await small.save(path);
      assertEquals(await codeOf(() => distributedSave(small, path, cluster)), "already_exists");
      const saving = distributedSave(gated(gate), path, cluster, { overwrite: true });
      await begun(path);
      assertEquals(await loaded(path), upTo(10), "what is there stays until all is written");
      const other = () => distributedSave(small, path, cluster, { overwrite: true });
      assertEquals(await codeOf(other), "failed_precondition");
      const again = distributedSave(gated(gate), path, cluster, { overwrite: true });
      await open(gate);
      await Promise.all([saving, again]);
      assertEquals((await loaded<number[]>(path)).flat(), WANTED);
      assertEquals(await leftIn(path), []);
      const endless = () => distributedSave(small.repeat(), `${path}2`, cluster);
      assertEquals(await codeOf(endless), "invalid_argument");
      const misspelt = () =>
        distributedSave(small, `${path}2`, cluster, { chunkBytes: 1 } as never);
      assertEquals(await codeOf(misspelt), "invalid_argument");
      const now = small.map((x) => x + Date.now());
      assertEquals(await codeOf(() => distributedSave(now, path, cluster)), "failed_precondition");
      const below = () => distributedSave(small, `${path}/DONE/below`, cluster);
      const error = await assertRejects(below, LeatError);
      assert(error.message.includes("Worker") && error.message.includes("DONE"), error.message);
    });
  },
);

testInline(
  "a distributedSave that is given up leaves what it wrote, tells who waits, and is gone on with",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 2 });
      const waiting = Dataset.load(path, { wait: { pollMs: 1 } })
        .then((growing) => assertRejects(() => Array.fromAsync(growing), LeatError));
      const stop = new AbortController();
      const saving = distributedSave(gated(gate), path, cluster, { signal: stop.signal });
      await begun(path);
      stop.abort(new Error("enough"));
      await assertRejects(() => saving, Error, "enough");
      const { code, message } = await waiting;
      assertEquals(code, "aborted");
      assertStringIncludes(message, `saving to ${path} was ended by a client`);
      const [{ name, iterations: [iteration] } = { name: "", iterations: [] }] =
        (await cluster.describe()).jobs;
      const { clients, failure } = iteration!;
      assertEquals([name, clients], [`distributedSave ${path}`, 0]);
      assertStringIncludes(failure!, `saving to ${path} was ended by a client`);
      await open(gate);
      await distributedSave(gated(gate), path, cluster);
      assertEquals((await loaded<number[]>(path)).flat(), WANTED);
    });
  },
);

testInline(
  "distributedSave shows on the dispatcher's pages, and goes on without its client",
  async (start) => {
    await inFolder(async (folder) => {
      const [path, gate] = [`${folder}/saved`, `${folder}/gate`];
      await using cluster = await start({ workers: 1, clientTimeoutMs: 50, jobGcTimeoutMs: 50 });
      const stop = () => {
        throw new Error("the client has died");
      };
      const saving = distributedSave(gated(gate), path, cluster, { onProgress: stop });
      await assertRejects(() => saving, Error, "the client has died");
      await begun(path);
      // The folder's content is reported a moment later.
      const { name, saving: saved } = await until(async () => {
        const [{ name, iterations: [iteration] } = { name: "", iterations: [] }] =
          (await cluster.describe()).jobs;
        const { clients, saving } = iteration!;
        return clients === 0 && saving!.splitsDone > 0 && { name, saving };
      });
      assertEquals([name, saved!.splitsTotal], [`distributedSave ${path}`, 200]);
      await open(gate);
      const growing = await Dataset.load<number[]>(path, { wait: { pollMs: 1 } });
      assertEquals((await Array.fromAsync(growing)).flat(), WANTED);
    });
  },
);

testInline("distributedSave has one worker produce what is no chain of splits", async (start) => {
  await inFolder(async (path) => {
    await using cluster = await start({ workers: 2 });
    const dataset = Dataset.range(50).concatenate(Dataset.range(50).skip(20)).take(70);
    await distributedSave(dataset, path, cluster, { compression: "gzip", chunkBytesMax: 64 });
    const wanted = await Array.fromAsync(dataset);
    const saved = await Dataset.load<number>(path);
    assertEquals(await Array.fromAsync(saved), wanted);
    assertEquals([saved.cardinality(), saved.elementSpec], [70, dataset.elementSpec]);
  });
});

testInline("distributedSave of an empty dataset is a saved dataset", async (start) => {
  await inFolder(async (path) => {
    await using cluster = await start({ workers: 1 });
    await distributedSave(Dataset.range(0), path, cluster);
    assertEquals(await loaded(path), []);
  });
});
