/** The model against the paper's worked example, and the search for settings. */
import { climb } from "../../../data/autotune/hill_climbing.ts";
import { Knob } from "../../../data/autotune/knob.ts";
import { ConsumerPace } from "../../../data/autotune/tuner.ts";
import {
  bufferedBytes,
  emptyProbability,
  outputLatencyMs,
  type Stage,
} from "../../../data/autotune/model.ts";
import { assert, assertAlmostEquals, assertEquals } from "../../assert.ts";

function stage(parts: Partial<Stage>): Stage {
  return {
    ...{ kind: "sync", serialMs: 0, callMs: 0, elementBytes: 0, inputsOpen: 1, inputs: [] },
    ...{ parallelism: { value: 1 }, buffer: { value: 0 } },
    ...parts,
  };
}

/** The pipeline of Figure 4 with the settings of Figure 5. */
function paperPipeline(): Record<"file" | "interleave" | "map" | "batch" | "prefetch", Stage> {
  const one = (value: Stage, ratio = 1) => [{ stage: value, ratio }];
  const file = stage({ serialMs: 5 });
  const interleave = stage({
    ...{ kind: "interleave", inputsOpen: 2, inputs: one(file), buffer: { value: 1 } },
  });
  const map = stage({
    ...{ kind: "calls", callMs: 2, inputs: one(interleave) },
    ...{ parallelism: { value: 5 }, buffer: { value: 5 } },
  });
  const batch = stage({ serialMs: 1, inputs: one(map, 10) });
  const prefetch = stage({ kind: "prefetch", buffer: { value: 2 }, inputs: one(batch) });
  return { file, interleave, map, batch, prefetch };
}

Deno.test("outputLatencyMs gives the figures of the paper's Figure 5", () => {
  const stages = paperPipeline();
  const latencies = new Map<Stage, number>();
  outputLatencyMs(stages.prefetch, 100, (stage, ms) => latencies.set(stage, ms));
  const of = (name: keyof typeof stages) => latencies.get(stages[name])!;
  assertEquals(of("file"), 5);
  // The paper rounds 4.17 to 4.15 and 3.57 to 3.55, and goes on with these.
  assertAlmostEquals(of("interleave"), 4.15, 0.03);
  assertAlmostEquals(of("map"), 3.55, 0.03);
  assertAlmostEquals(of("batch"), 36.5, 0.3);
  assertAlmostEquals(1_000 / of("batch"), 27.4, 0.2);
  assertAlmostEquals(of("prefetch"), 27, 0.3);
});

Deno.test("emptyProbability is equation 1, and its limits", () => {
  assertEquals(emptyProbability(5, 5, 3), 1 / 4);
  assertAlmostEquals(emptyProbability(5 * (1 + 1e-7), 5, 3), 1 / 4, 1e-5);
  assertAlmostEquals(emptyProbability(1, 2, 1), 0.5 / 0.75, 1e-12);
  assertEquals(emptyProbability(1, Infinity, 4), 1);
  assertEquals(emptyProbability(Infinity, 1, 4), 0);
  assertEquals(emptyProbability(1e9, 1, 64), 0);
});

/** Two functions one after the other: the second takes three times as long. */
function twoMaps() {
  const range = { min: 1, max: 64, initial: 4 };
  const first = new Knob("numParallelCalls", range);
  const second = new Knob("numParallelCalls", range);
  const ahead = new Knob("bufferSize", { min: 2, max: 64, initial: 16 });
  const calls = (knob: Knob, callMs: number, inputs: Stage["inputs"]) =>
    stage({ kind: "calls", callMs, parallelism: knob, buffer: knob, inputs, elementBytes: 10 });
  const below = calls(first, 10, [{ stage: stage({ serialMs: 0.1 }), ratio: 1 }]);
  const above = calls(second, 30, [{ stage: below, ratio: 1 }]);
  const root = stage({
    ...{ kind: "prefetch", buffer: ahead, elementBytes: 10 },
    inputs: [{ stage: above, ratio: 1 }],
  });
  return { root, first, second, ahead, knobs: [first, second, ahead] };
}

Deno.test("climb makes the slowest function as fast as the CPU budget allows", () => {
  const { root, first, second, knobs } = twoMaps();
  climb(root, knobs, Infinity, { cpu: 12, ramBytes: 1e9 });
  assertEquals([first.value, second.value], [3, 9]);
});

Deno.test("climb makes functions below a full buffer as fast as the consumer", () => {
  const { root, first, second, knobs } = twoMaps();
  // 8 ms, although the consumer would find elements in the buffer for a while.
  climb(root, knobs, 125, { cpu: 64, ramBytes: 1e9 });
  assert(10 / first.value <= 8 && 30 / second.value <= 8, `${first.value} and ${second.value}`);
});

Deno.test("climb raises nothing for a consumer that is slower than the pipeline", () => {
  const { root, knobs } = twoMaps();
  climb(root, knobs, 1_000, { cpu: 64, ramBytes: 1e9 });
  assert(knobs.some(({ value }) => value > 5));
  climb(root, knobs, 0.001, { cpu: 64, ramBytes: 1e9 });
  assertEquals(knobs.map(({ value }) => value), [1, 1, 2]);
});

Deno.test("climb gives calls to a pipeline whose elements are larger than the RAM budget", () => {
  const { root, first, second, knobs } = twoMaps();
  const batches = stage({ ...root, elementBytes: 1e9, buffer: root.buffer });
  climb(batches, knobs, Infinity, { cpu: 12, ramBytes: 1e6 });
  assertEquals([root.buffer.value, first.value + second.value], [1, 12]);
});

Deno.test("climb gives buffers to a pipeline with more functions than its CPU budget allows", () => {
  const { root, first, second, ahead, knobs } = twoMaps();
  climb(root, knobs, 24, { cpu: 1, ramBytes: 1e9 });
  assertEquals([first.value, second.value], [1, 1]);
  assert(ahead.value > ahead.min, `${ahead.value}`);
});

Deno.test("climb keeps the buffers within the RAM budget", () => {
  const { root, knobs } = twoMaps();
  for (const ramBytes of [30, 55, 90, 200]) {
    climb(root, knobs, 50, { cpu: 64, ramBytes });
    assert(bufferedBytes(root) <= ramBytes, `${bufferedBytes(root)} of ${ramBytes} bytes`);
  }
});

Deno.test("ConsumerPace follows a consumer, and long pauses in between hardly change it", () => {
  const pace = new ConsumerPace();
  let totalMs = 0;
  const pause = (ms: number, times = 1) => {
    for (let i = 0; i < times; i++) pace.note(totalMs += ms, 1);
  };
  pause(10, 50);
  assertAlmostEquals(pace.pauseMs, 10, 1e-9);
  for (let i = 0; i < 50; i++) {
    pause(100_000);
    pause(10, 3);
  }
  assert(pace.pauseMs < 11, `${pace.pauseMs} ms`);
  pause(200, 300);
  assertAlmostEquals(pace.pauseMs, 200, 2);
  pause(1, 50);
  assertAlmostEquals(pace.pauseMs, 1, 0.1);
});
