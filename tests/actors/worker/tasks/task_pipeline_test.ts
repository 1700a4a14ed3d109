/** A task's pipeline over runners that die or are retired. */

import type { TaskDefinition } from "../../../../actors/dispatcher/protocol.ts";
import type { ActorContext } from "../../../../actors/runtime/actor.ts";
import { NO_SPLITS } from "../../../../actors/worker/runner/runner.ts";
import { TaskPipeline } from "../../../../actors/worker/tasks/task_pipeline.ts";
import { LeatError } from "../../../../core/error.ts";
import { DenoWorld } from "../../../../platform/deno_world.ts";
import { assertEquals, assertRejects } from "../../../assert.ts";
import { HeldRunner } from "../../lib/held_runner.ts";

const DEFINITION: TaskDefinition = {
  clusterId: "cluster",
  taskId: 1,
  iterationId: 1,
  jobId: 1,
  owner: "somebody",
  repetition: 0,
  seed: "0000000000000001",
  dataset: {
    datasetId: "d",
    graph: new Uint8Array(),
    fingerprint: "f",
    cardinality: -2,
    compression: "gzip",
  },
  parameters: { datasetId: "d", processingMode: "OFF", sharing: false },
};

/** A pipeline, and the runners that it has started. */
function pipelineOf() {
  const runners: HeldRunner[] = [];
  /** Per runner: whether it is the current one. */
  const isCurrent: (() => boolean)[] = [];
  const context: Partial<ActorContext> = { world: new DenoWorld({ logLevel: "off" }) };
  const pipeline = new TaskPipeline({
    context: context as ActorContext,
    definition: DEFINITION,
    runners: {
      start: () => {
        runners.push(new HeldRunner());
        return runners.at(-1)!;
      },
      listSplits: () => Promise.resolve([]),
      close: () => Promise.resolve(),
    },
    settings: { epoch: 0, splits: false, shared: false },
    splits: (isCurrentRunner) => {
      isCurrent.push(isCurrentRunner);
      return NO_SPLITS;
    },
  });
  return { pipeline, runners, isCurrent };
}

Deno.test("TaskPipeline.died reports each death once, and only of the current runner", async () => {
  const { pipeline, runners } = pipelineOf();
  const runner = pipeline.start();
  const steps = [pipeline.step(runner), pipeline.step(runner)];
  const error = new LeatError("unavailable", "it is gone");
  for (const asked of runners[0]!.asked) asked.reject(error);
  for (const step of steps) await assertRejects(() => step, LeatError, "it is gone");
  assertEquals(steps.map(() => pipeline.handleRunnerDeath(runner, error)), [true, false]);
  assertEquals([pipeline.runner, runners[0]!.disposed], [undefined, 1]);
  const next = pipeline.start();
  assertEquals([pipeline.handleRunnerDeath(runner, error), pipeline.runner], [false, next]);
  assertEquals(pipeline.stats({ produced: 0, bufferedBytes: 0, waiting: 0 }).runnerRestarts, 1);
});

Deno.test("TaskPipeline tells the splits of a runner whether it is still the current one", () => {
  const { pipeline, isCurrent } = pipelineOf();
  const runner = pipeline.start();
  assertEquals(isCurrent.map((is) => is()), [true]);
  pipeline.handleRunnerDeath(runner, new LeatError("unavailable", "it is gone"));
  assertEquals(isCurrent.map((is) => is()), [false]);
  pipeline.start();
  assertEquals(isCurrent.map((is) => is()), [false, true]);
});

Deno.test("TaskPipeline does not count compression by a retired runner", async () => {
  const { pipeline, runners } = pipelineOf();
  const runner = pipeline.start();
  const compressed = () =>
    pipeline.stats({ produced: 0, bufferedBytes: 0, waiting: 0 }).compression?.bytes;
  const trial = { bytes: 100, compressedBytes: 10, ms: 1 };
  const outcome = { kind: "element", frame: new Uint8Array(10), trial } as const;
  const steps = [pipeline.step(runner), pipeline.step(runner)];
  runners[0]!.asked[0]!.resolve(outcome);
  await steps[0];
  assertEquals(compressed(), 100);
  pipeline.retire();
  runners[0]!.asked[1]!.resolve(outcome);
  await steps[1];
  assertEquals(compressed(), 100);
});
