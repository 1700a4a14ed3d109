/** `deno task fastflow`: what it refuses, and its smallest run: one workload, modelled. */
import { ModelledTraining, VirtualTime } from "../../../cli/fastflow/model.ts";
import type { OffloadChoice } from "../../../mod.ts";
import {
  assert,
  assertAlmostEquals,
  assertEquals,
  assertMatch,
  assertStringIncludes,
} from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { withFiles } from "../../lib/temp_folder.ts";

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const flags = ["-P=fastflow", "--no-check"];
  await using child = startChild("cli/fastflow.ts", { args, flags });
  const { code } = await child.status;
  return { code, out: child.stdout.text, err: child.stderr.text };
}

Deno.test("fastflow prints every table, and writes the page", async () => {
  await withFiles({}, async (folder) => {
    const path = `${folder}/report.html`;
    const args = ["--quick", "--modelled", "--workloads", "M", "--report", path];
    const { code, out, err } = await run(...args);
    assertEquals(code, 0, err);
    for (const words of ["What a batch costs", "local only is 1", "lost against the best"]) {
      assertStringIncludes(out, words);
    }
    assertMatch(out, /│ M MelGAN +│ 1:2, slow disk +│/);
    const page = await Deno.readTextFile(path);
    assertMatch(page, /<svg[^]*Profiling, of a training of 10,000 steps/);
  });
  const wrong = await run("--workloads", "X");
  assertEquals(wrong.code, 2);
  assertStringIncludes(wrong.err, "--workloads has 'X'");
  const both = await run("--measured", "--modelled");
  assertEquals(both.code, 2);
  assertStringIncludes(both.err, "--measured and --modelled");
});

const COSTS = {
  ...{ prepareMs: 8, receiveMs: { "p'2": 4, "p'3": 2 }, stepMs: 1 },
  ...{ bytes: 1_000, readBytes: 1_000, planFromStoreMs: 0 },
};
const ENVIRONMENT = {
  ...{ name: "1:1", localCores: 1, remoteCores: 1 },
  ...{ linkBytesPerSecond: Infinity, remoteDiskBytesPerSecond: Infinity },
};

/** The time of a step, in ms, after the buffers have filled. */
function stepTime(choice: OffloadChoice, environment = ENVIRONMENT): number {
  const time = new VirtualTime();
  const training = new ModelledTraining(time, COSTS, environment, choice);
  const steps = 400;
  let fromMs = 0;
  for (let i = -100; i < steps; i++) {
    if (i === 0) fromMs = time.nowMs;
    training.next();
    time.advance(COSTS.stepMs);
  }
  return (time.nowMs - fromMs) / steps;
}

Deno.test("ModelledTraining is bound by the slowest of host, workers, network and accelerator", () => {
  const near = (actual: number, expected: number) => assertAlmostEquals(actual, expected, 0.1);
  near(stepTime({ candidate: null, ratio: 0 }), 8);
  near(stepTime({ candidate: null, ratio: 0 }, { ...ENVIRONMENT, localCores: 2 }), 4);
  const all = { candidate: "p'3", ratio: 1 };
  near(stepTime(all), 8);
  const many = { ...ENVIRONMENT, remoteCores: 16 };
  near(stepTime(all, many), 2);
  near(stepTime({ ...all, candidate: "p'2" }, many), 4);
  near(stepTime(all, { ...many, linkBytesPerSecond: 100_000 }), 10);
  near(stepTime(all, { ...many, remoteDiskBytesPerSecond: 50_000 }), 20);
  // The host prepares one batch of two, and receives the other.
  near(stepTime({ candidate: "p'3", ratio: 0.5 }, many), 5);
  assert(stepTime(all, { ...many, localCores: 8 }) < 1.1, "the accelerator alone");
});
