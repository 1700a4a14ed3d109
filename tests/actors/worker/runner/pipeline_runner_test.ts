/** Pipelines that run in their caller's thread. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  PipelineRunner,
  PipelineRunners,
} from "../../../../actors/worker/runner/pipeline_runner.ts";
import { type RunnerSettings, TASK_FENCED } from "../../../../actors/worker/runner/runner.ts";
import { LeatError } from "../../../../core/error.ts";
import { Dataset } from "../../../../mod.ts";
import { FramePool } from "../../../../transport/codec.ts";
import { DenoHost } from "../../../../platform/deno_host.ts";
import { MemoryHost } from "../../../data/lib/memory_host.ts";
import { assert, assertEquals, assertMatch } from "../../../assert.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const NO_SPLITS = { next: () => Promise.resolve(null), total: () => Promise.resolve(0) };

function settingsOf(dataset: Dataset<unknown>): RunnerSettings {
  return {
    graph: dataset.serialize(),
    seed: "0000000000000001",
    epoch: 0,
    splits: false,
    shared: false,
  };
}

Deno.test("PipelineRunners keeps no disposed runner", async () => {
  const runners = new PipelineRunners(new DenoHost());
  const settings = settingsOf(Dataset.range(10));
  const refs: WeakRef<object>[] = [];
  for (let i = 0; i < 10; i++) {
    const runner = runners.start(settings, NO_SPLITS);
    assertEquals((await runner.next()).kind, "element");
    runner.dispose();
    refs.push(new WeakRef(runner));
  }
  // A WeakRef holds its target until the macrotask that made it is over.
  await new Promise((resolve) => setTimeout(resolve, 0));
  collectGarbage();
  // The last one may still be in a register.
  assertEquals(refs.slice(0, -1).filter((ref) => ref.deref() !== undefined).length, 0);
  await runners.close();
});

Deno.test("a task that gets no splits any more ends reading, also below ignoreErrors", async () => {
  const runners = new PipelineRunners(new DenoHost());
  let asked = 0;
  const splits = {
    ...NO_SPLITS,
    next: () => {
      asked++;
      const details = { reason: TASK_FENCED };
      return Promise.reject(new LeatError("failed_precondition", "no more", { details }));
    },
  };
  const settings = { ...settingsOf(Dataset.range(10).ignoreErrors()), splits: true };
  const outcome = await runners.start(settings, splits).next();
  assert(outcome.kind === "error" && outcome.isFinal);
  assertEquals([outcome.error.details, asked], [{ reason: TASK_FENCED }, 1]);
  await runners.close();
});

Deno.test("a split that cannot be opened fails at each step, and never ends", async () => {
  const runners = new PipelineRunners(new DenoHost());
  const runner = runners.start(settingsOf(Dataset.range(10).take(5)), NO_SPLITS);
  const only = { index: 0, start: 0, stop: 5, grant: 1 };
  const outcomes = [await runner.next(only), await runner.next(only)];
  for (const outcome of outcomes) assert(outcome.kind === "error" && outcome.isFinal);
  await runners.close();
});

Deno.test("a split runs once: steps beyond its end get the end", async () => {
  const runners = new PipelineRunners(new DenoHost());
  const runner = runners.start(settingsOf(Dataset.range(10)), NO_SPLITS);
  const only = { index: 0, start: 0, stop: 2, grant: 1 };
  const outcomes = await Promise.all(Array.from({ length: 5 }, () => runner.next(only)));
  assertEquals(outcomes.map(({ kind }) => kind), ["element", "element", "end", "end", "end"]);
  await runners.close();
});

Deno.test("a split that is assigned again runs again from its beginning", async () => {
  const runners = new PipelineRunners(new DenoHost());
  const runner = runners.start(settingsOf(Dataset.range(10)), NO_SPLITS);
  const kinds: string[] = [];
  for (const grant of [1, 2]) {
    const only = { index: 0, start: 0, stop: 2, grant };
    for (let i = 0; i < 3; i++) kinds.push((await runner.next(only)).kind);
  }
  assertEquals(kinds, ["element", "element", "end", "element", "element", "end"]);
  await runners.close();
});

Deno.test("PipelineRunner begins no save when it is disposed while it loads what saves need", async () => {
  const host = new MemoryHost();
  const runners = new PipelineRunners(host);
  const save = { folder: "/saved", overwrite: false, fingerprint: "f" };
  const runner = runners.start({ ...settingsOf(Dataset.range(2)), save }, NO_SPLITS);
  const step = runner.next({ work: "begin", owner: "cluster/1" });
  // The step has begun then, and waits for the module.
  await Promise.resolve();
  runner.dispose();
  assertEquals(await step, { kind: "end" });
  assertEquals([...host.contents.keys()], []);
  await runners.close();
});

Deno.test("an element too large for a message fails alone and names its pipeline", async () => {
  const runners = new PipelineRunners(new DenoHost());
  const dataset = Dataset.range(2).map((x): unknown => {
    if (x === 1) return x;
    const half = new Uint8Array(600 * 2 ** 20); // never written, so it takes no memory
    return [half, half];
  });
  const runner = runners.start(settingsOf(dataset), NO_SPLITS);
  const large = await runner.next();
  assertEquals(large.kind === "error" && large.error.code, "resource_exhausted");
  const message = large.kind === "error" ? large.error.message : "";
  assertMatch(
    message,
    /map, the last operator .* takes 12582\d{5} bytes .* sends at most 1073741824/,
  );
  assertEquals((await runner.next()).kind, "element");
  await runners.close();
});

Deno.test("PipelineRunner uses the memory of an element again once it is compressed", async () => {
  const taken: ArrayBuffer[] = [];
  const pool = new class extends FramePool {
    override take(byteLength: number): ArrayBuffer {
      taken.push(super.take(byteLength));
      return taken.at(-1)!;
    }
  }();
  const batches = Dataset.fromTensors(new Uint8Array(1_000_000)).repeat();
  const runner = new PipelineRunner(settingsOf(batches), NO_SPLITS, new DenoHost(), { pool });
  const frames: Uint8Array[] = [];
  for (let i = 0; i < 3; i++) {
    const outcome = await runner.next(undefined, { codec: "zstd", isTrial: false });
    if (outcome.kind === "element") frames.push(outcome.frame);
  }
  runner.dispose();
  assertEquals([taken.length, new Set(taken).size], [3, 1]);
  assert(frames.every((frame) => frame.length < 100_000 && frame.buffer !== taken[0]));
});
