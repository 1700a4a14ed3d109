/** Runner threads: real threads that spin or die. */
import { pathToFileURL } from "node:url";
import { Dataset, udf } from "../../../mod.ts";
import { decodeMessage } from "../../../transport/codec.ts";
import type { Runner, RunnerSettings, RunnerSplits } from "../../../actors/worker/runner/runner.ts";
import { LeatError } from "../../../core/error.ts";
import { startThread } from "../../../transport/start_thread.ts";
import { RunnerThreads } from "../../../platform/threads/runner_threads.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";
import { soon } from "../../cluster/lib.ts";
import { PATIENCE_MS, until } from "../../lib/until.ts";

const NO_SPLITS: RunnerSplits = {
  next: () => Promise.resolve(null),
  total: () => Promise.resolve(0),
};

function settings(dataset: Dataset<unknown>, more: Partial<RunnerSettings> = {}): RunnerSettings {
  return {
    graph: dataset.serialize(),
    seed: "0000000000000007",
    epoch: 0,
    splits: false,
    shared: false,
    ...more,
  };
}

async function drain(runner: Runner): Promise<unknown[]> {
  const elements: unknown[] = [];
  for (;;) {
    const outcome = await runner.next();
    if (outcome.kind === "end") return elements;
    elements.push(
      "frame" in outcome ? decodeMessage(outcome.frame) : outcome.error.message,
    );
    if (outcome.kind === "error" && outcome.isFinal) return elements;
  }
}

/**
 * Two elements, of which the second takes as long as a file exists: Deno never ends a thread that
 * spins, and it would occupy a core during all later tests. It signals its start by another file.
 */
function spinning(path: string): Dataset<number> {
  return Dataset.range(2).map((x, { path }) => {
    const deno = (globalThis as unknown as { Deno: typeof Deno }).Deno;
    if (x === 1) deno.writeTextFileSync(`${path}-begun`, "");
    while (x === 1) {
      try {
        deno.statSync(path);
      } catch {
        break; // it has been removed
      }
    }
    return x;
  }, { captures: { path } });
}

Deno.test("RunnerThreads runs a pipeline on a thread and answers in order", async () => {
  const runners = new RunnerThreads();
  const runner = runners.start(settings(Dataset.range(5).map((x) => x * 2)), NO_SPLITS);
  assertEquals(await drain(runner), [0, 2, 4, 6, 8]);
  runner.dispose();
  await runners.close();
});

Deno.test("RunnerThreads writes elements into the memory of earlier ones that it gets back", async () => {
  const runners = new RunnerThreads();
  const elements = Dataset.range(8).map((x) => new Float64Array(20_000).fill(x));
  const runner = runners.start(settings(elements), NO_SPLITS);
  let reused = 0;
  for (let x = 0; x < 8; x++) {
    const outcome = await runner.next();
    if (!("frame" in outcome)) throw new Error(outcome.kind);
    const { frame } = outcome;
    assertEquals(decodeMessage(frame), new Float64Array(20_000).fill(x));
    // Nothing is written into the space before an element.
    const room = new Uint8Array(frame.buffer as ArrayBuffer, 0, 1);
    reused += room[0]!;
    room[0] = 1;
    runner.recycle!(frame.buffer as ArrayBuffer);
  }
  assertEquals(reused, 7);
  runner.dispose();
  await runners.close();
});

Deno.test("RunnerThreads reads its splits across the thread", async () => {
  const runners = new RunnerThreads();
  const handed = [{ start: 2, stop: 4 }, { start: 8, stop: 9 }];
  const runner = runners.start(settings(Dataset.range(10), { splits: true }), {
    next: () => Promise.resolve(handed.shift() ?? null),
    total: () => Promise.resolve(2),
  });
  assertEquals(await drain(runner), [2, 3, 8]);
  await runners.close();
});

Deno.test("RunnerThreads keeps the code of an error of a split request", async () => {
  const runners = new RunnerThreads();
  const error = new LeatError("failed_precondition", "the task has ended", {
    details: { reason: "task_fenced" },
  });
  const runner = runners.start(settings(Dataset.range(10), { splits: true }), {
    next: () => Promise.reject(error),
    total: () => Promise.resolve(2),
  });
  const outcome = await runner.next();
  assertEquals(outcome.kind === "error" && outcome.error.details, { reason: "task_fenced" });
  await runners.close();
});

Deno.test("RunnerThreads stays responsive while a user function spins, and stops it", async () => {
  const runners = new RunnerThreads();
  const path = await Deno.makeTempFile();
  const runner = runners.start(settings(spinning(path)), NO_SPLITS);
  assertEquals((await runner.next()).kind, "element");
  const stuck = runner.next();
  let ticks = 0;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (++ticks < 5) return;
      clearInterval(timer);
      resolve();
    }, 10);
  });
  runner.dispose();
  assertEquals((await assertRejects(() => stuck, LeatError)).code, "unavailable");
  await Deno.remove(path);
  await runners.close();
});

Deno.test("RunnerThreads rejects open calls when the thread dies of an uncaught error", async () => {
  const runners = new RunnerThreads();
  const dying = Dataset.range(1).map(() => {
    Promise.reject(new Error("boom"));
    return new Promise<number>(() => {});
  });
  const runner = runners.start(settings(dying), NO_SPLITS);
  const error = await assertRejects(() => runner.next(), LeatError, "boom");
  assertEquals(error.code, "unavailable");
  runner.dispose();
  await runners.close();
});

Deno.test("RunnerThreads fails the element whose function tries to end its thread, and continues", async () => {
  const dataset = Dataset.range(4).map((x) => {
    const scope = globalThis as unknown as {
      Deno: { exit(code: number): never };
      process: { exit(code: number): never };
      close(): void;
    };
    if (x === 0) scope.close();
    if (x === 1) scope.Deno.exit(3);
    if (x === 2) scope.process.exit(4);
    return x;
  });
  const runners = new RunnerThreads();
  const runner = runners.start(settings(dataset), NO_SPLITS);
  const [closed, exited, left, last] = await drain(runner);
  for (
    const [message, call] of [[closed, "close()"], [exited, "Deno.exit(3)"], [
      left,
      "process.exit(",
    ]]
  ) {
    assertStringIncludes(String(message), `Code of the pipeline called ${call}`);
  }
  assertEquals(last, 3);
  runner.dispose();
  await runners.close();
});

Deno.test("RunnerThreads lists splits, or explains why it cannot", async () => {
  const runners = new RunnerThreads();
  const table = await runners.listSplits(Dataset.range(600).batch(10).serialize());
  assertEquals([...table[0]!.subarray(0, 2)], [0, 10]);
  const missing = Dataset.textLines("/nowhere/at/all.txt").filter(() => true);
  assertEquals((await runners.listSplits(missing.serialize())).length, 1);
  const unsplittable = Dataset.listFiles("/nowhere/*.txt").serialize();
  assertEquals(
    (await assertRejects(() => runners.listSplits(unsplittable), LeatError)).code,
    "not_found",
  );
  await runners.close();
});

Deno.test("RunnerThreads ends a cancelled listing, with its thread unless that is needed", async () => {
  let ended = 0;
  const runners = new RunnerThreads({}, {
    start: (...args) => {
      const end = startThread(...args);
      return () => {
        ended++;
        end();
      };
    },
  });
  const graph = Dataset.range(600).batch(10).serialize();
  const givingUp = [new AbortController(), new AbortController()];
  // None ends before its thread has loaded.
  const shared = givingUp.map(({ signal }) => runners.listSplits(graph, signal));
  givingUp[0]!.abort();
  assertEquals((await assertRejects(() => shared[0]!, LeatError)).code, "cancelled");
  assertEquals((await shared[1]!).length, 1);
  assertEquals(ended, 0);
  givingUp[1]!.abort(); // too late
  assertEquals(ended, 0);
  await runners.close();

  let starts = 0;
  const others = new RunnerThreads({}, {
    start: (...args) => {
      starts++;
      return startThread(...args);
    },
  });
  const late = new AbortController();
  const given = others.listSplits(graph, late.signal);
  late.abort();
  assertEquals((await assertRejects(() => given, LeatError)).code, "cancelled");
  const runner = others.start(settings(Dataset.range(3)), NO_SPLITS);
  assertEquals(await drain(runner), [0, 1, 2]);
  assertEquals(starts, 1, "what had begun to load was begun again");
  runner.dispose();
  await others.close();
});

Deno.test("RunnerThreads loads a few threads at a time, first those that somebody waits for", async () => {
  let starts = 0;
  const runners = new RunnerThreads({}, {
    loadingMax: 2,
    loadTimeoutMs: 2 * PATIENCE_MS,
    // Only two ever load: otherwise more would start the longer this test takes.
    start: (...args) => ++starts <= 2 ? startThread(...args) : () => {},
  });
  const nobody = new Promise<void>(() => {});
  const early = Array.from(
    { length: 250 },
    () => runners.start(settings(Dataset.range(1)), NO_SPLITS, { owner: "a", asked: nobody }),
  );
  const awaited = runners.start(settings(Dataset.range(3)), NO_SPLITS);
  assertEquals(await soon("the awaited pipeline", drain(awaited)), [0, 1, 2]);
  // A thread that comes back serves the next pipeline, and those in the queue end at once.
  awaited.dispose();
  assertEquals(await soon("the next pipeline", drain(early[0]!)), [0]);
  const waiting = early.at(-1)!.next();
  for (const runner of early) runner.dispose();
  assertEquals((await assertRejects(() => waiting, LeatError)).code, "cancelled");
  assert(starts <= 4, `${starts} threads: not two that have loaded, and two that load`);
  await runners.close();
});

Deno.test("RunnerThreads ends a thread with a cancelled listing once its pipeline is over", async () => {
  let [starts, ends] = [0, 0];
  // The listing waits for its storage, and other work of its thread continues.
  const runners = new RunnerThreads({ storageLatencyMs: 600_000 }, {
    start: (...args) => {
      starts++;
      const end = startThread(...args);
      return () => {
        ends++;
        end();
      };
    },
  });
  const givingUp = new AbortController();
  await runners.listSplits(Dataset.range(1).serialize());
  const lines = Dataset.textLines(import.meta.filename!);
  const listing = runners.listSplits(lines.serialize(), givingUp.signal);
  const runner = runners.start(settings(Dataset.range(3)), NO_SPLITS);
  assertEquals(await drain(runner), [0, 1, 2]);
  givingUp.abort();
  assertEquals([starts, ends], [1, 0]);
  const refused = assertRejects(() => listing, LeatError);
  runner.dispose();
  await until(() => ends === 1);
  await refused;
  const another = runners.start(settings(Dataset.range(3)), NO_SPLITS);
  assertEquals(await drain(another), [0, 1, 2]);
  assertEquals([starts, ends], [3, 1]); // and one for who comes next
  another.dispose();
  await runners.close();
});

Deno.test("RunnerThreads ends no thread on which an awaited listing runs if too many come back", async () => {
  let ends = 0;
  // The listing waits for its storage, and other work of its thread continues.
  const runners = new RunnerThreads({ storageLatencyMs: 600_000 }, {
    start: (...args) => {
      const end = startThread(...args);
      return () => {
        ends++;
        end();
      };
    },
  });
  await runners.listSplits(Dataset.range(1).serialize());
  const givingUp = new AbortController();
  const lines = Dataset.textLines(import.meta.filename!);
  let isOver = false;
  const over = runners.listSplits(lines.serialize(), givingUp.signal).catch(() => isOver = true);
  // The first gets the thread of the listing. Of the others' threads, four are kept.
  const open: Runner[] = [];
  for (let i = 0; i < 6; i++) {
    open.push(runners.start(settings(Dataset.range(1)), NO_SPLITS));
    assertEquals(await drain(open[i]!), [0]);
  }
  for (const runner of open.slice(1)) runner.dispose();
  await until(() => ends === 1);
  open[0]!.dispose();
  await until(() => ends === 2);
  assertEquals(isOver, false);
  givingUp.abort();
  await over;
  await runners.close();
});

Deno.test("RunnerThreads runs no pipeline on a thread that keeps the module of an earlier one", async () => {
  const folder = await Deno.makeTempDir();
  const module = pathToFileURL(`${folder}/scale.ts`).href;
  const write = (factor: number) =>
    Deno.writeTextFile(`${folder}/factor.ts`, `export const FACTOR = ${factor};`);
  await Deno.writeTextFile(
    `${folder}/scale.ts`,
    'import { FACTOR } from "./factor.ts"; export const scale = (x: number) => x * FACTOR;',
  );
  let ended = 0;
  const runners = new RunnerThreads({}, {
    start: (...args) => {
      const end = startThread(...args);
      return () => {
        ended++;
        end();
      };
    },
  });
  const elementsOf = async (dataset: Dataset<number>) => {
    const runner = runners.start(settings(dataset), NO_SPLITS);
    const elements = await drain(runner);
    runner.dispose();
    return elements;
  };
  const scaled = Dataset.range(3).map(udf<(x: number) => number>(module, "scale"));
  await write(10);
  assertEquals(await elementsOf(scaled), [0, 10, 20]);
  await until(() => ended === 1);
  await write(100);
  assertEquals(await elementsOf(scaled), [0, 100, 200]);
  await until(() => ended === 2);
  await runners.close();
  await Deno.remove(folder, { recursive: true });
});

Deno.test("RunnerThreads loads a thread ahead of the next pipeline if an earlier one imported a module", async () => {
  const module = import.meta.resolve("../../data/udf/fixture_functions.ts");
  let starts = 0;
  const runners = new RunnerThreads({}, {
    start: (...args) => {
      starts++;
      return startThread(...args);
    },
  });
  const elementsOf = async (dataset: Dataset<number>) => {
    const runner = runners.start(settings(dataset), NO_SPLITS);
    const elements = await drain(runner);
    runner.dispose();
    return elements;
  };
  const doubled = Dataset.range(3).map(udf<(x: number) => number>(module, "double"));
  assertEquals(await elementsOf(doubled), [0, 2, 4]);
  await until(() => starts === 2);
  assertEquals(await elementsOf(doubled), [0, 2, 4]);
  assertEquals(starts, 3, "no other one was loaded while the pipeline ran");
  await runners.close();
});

Deno.test("RunnerThreads starts a pipeline once a thread can be started, and leaves nothing open of one that cannot", async () => {
  let starts = 0;
  const told: string[] = [];
  const runners = new RunnerThreads({}, {
    start(...thread) {
      // The spare one, and the first of the pipeline.
      if (++starts <= 2) throw new LeatError("resource_exhausted", "no more threads");
      return startThread(...thread);
    },
    onRetry: ({ message }) => told.push(message),
  });
  const runner = runners.start(settings(Dataset.range(3)), NO_SPLITS);
  assertEquals(await drain(runner), [0, 1, 2]);
  assertEquals(told, ["no more threads"]);
  runner.dispose();
  await runners.close();
});

Deno.test("RunnerThreads warns once of a thread that loads slowly, with advice", async () => {
  const said: string[] = [];
  const runners = new RunnerThreads({}, {
    // It never loads.
    start: () => () => {},
    onSlowLoading: (what) => said.push(what),
    slowAfterMs: 1,
  });
  await until(() => said.length > 0);
  assertStringIncludes(said.join(), "deno check");
  await runners.close();
  assertEquals(said.length, 1);
});

// Messages to a thread that never reads them stay there, with their ports.
Deno.test("RunnerThreads abandons a thread that does not load in time, and blames no function", {
  sanitizeResources: false,
}, async () => {
  const kept: MessagePort[] = [];
  const neverLoaded: string[] = [];
  const runners = new RunnerThreads({}, {
    start(_module, _name, port) {
      kept.push(port);
      return () => {};
    },
    onNeverLoaded: () => neverLoaded.push("lost"),
    onRunaway: (what) => neverLoaded.push(what),
    runawayAfterMs: 1,
    loadTimeoutMs: 1,
  });
  await until(() => runners.runaways === 1);
  assertEquals(neverLoaded, ["lost"]);
  const given = runners.listSplits(Dataset.range(1).serialize());
  await assertRejects(() => given, LeatError, "has not loaded within");
  await runners.close();
  for (const port of kept) port.close();
});

Deno.test("RunnerThreads counts the bytes that a pipeline reads", async () => {
  const path = await Deno.makeTempFile();
  await Deno.writeTextFile(path, "one\ntwo\n");
  const runners = new RunnerThreads();
  const runner = runners.start(settings(Dataset.textLines(path)), NO_SPLITS);
  assertEquals(await drain(runner), ["one", "two"]);
  assertEquals(runner.bytesRead, 8);
  runner.dispose();
  await runners.close();
  await Deno.remove(path);
});

Deno.test("RunnerThreads puts elements in shared memory when they are to be shared", async () => {
  const runners = new RunnerThreads();
  const runner = runners.start(settings(Dataset.range(4).batch(4), { shared: true }), NO_SPLITS);
  const outcome = await runner.next();
  assertEquals(
    outcome.kind === "element" && outcome.frame.buffer instanceof SharedArrayBuffer,
    true,
  );
  runner.dispose();
  await runners.close();
});

Deno.test("RunnerThreads counts a function that goes on after its thread was terminated, while it does", async () => {
  const path = await Deno.makeTempFile();
  const told = Promise.withResolvers<string>();
  const runners = new RunnerThreads({}, { onRunaway: told.resolve, runawayAfterMs: 1 });
  const runner = runners.start(settings(spinning(path), { name: "task 7" }), NO_SPLITS);
  await runner.next();
  const never = runner.next();
  await until(() => Deno.stat(`${path}-begun`).then(() => true, () => false), 5);
  runner.dispose();
  assertEquals((await assertRejects(() => never, LeatError)).code, "unavailable");
  assertEquals(await told.promise, "task 7");
  assertEquals(runners.runaways, 1);
  for (const each of [path, `${path}-begun`]) await Deno.remove(each);
  await until(() => runners.runaways === 0);
  await runners.close();
});

Deno.test("RunnerThreads does not count a thread that died by itself as a runaway", async () => {
  const told: string[] = [];
  const runaway = (what: string) => told.push(what);
  const runners = new RunnerThreads({}, { onRunaway: runaway, runawayAfterMs: 1 });
  const forgetful = Dataset.range(1).map(() => {
    Promise.reject(new Error("nobody catches it"));
    return new Promise<number>(() => {});
  });
  for (const name of ["one", "two"]) {
    const runner = runners.start(settings(forgetful, { name }), NO_SPLITS);
    assertEquals((await assertRejects(() => runner.next(), LeatError)).code, "unavailable");
    runner.dispose();
    // Another thread is loaded for it, which takes longer than counting the first one.
    const next = runners.start(settings(Dataset.range(1)), NO_SPLITS);
    assertEquals(await drain(next), [0]);
    next.dispose();
  }
  // On a busy machine the threads of "a pipeline" may take longer than a millisecond to end.
  assertEquals(told.filter((what) => what !== "a pipeline"), []);
  await until(() => runners.runaways === 0);
  await runners.close();
});
