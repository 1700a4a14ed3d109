/** Trainers on threads: their batches never pass through the main thread. */

import type { Envelope } from "../../actors/runtime/envelope.ts";
import { Deployment } from "../../cli/simulate/deployment.ts";
import { generateText } from "../../cli/simulate/text_corpus.ts";
import { pipelineOf, type TextPipeline } from "../../cli/simulate/pipelines.ts";
import { Payload } from "../../transport/payload.ts";
import { assert, assertEquals } from "../assert.ts";
import { TempFolder } from "../lib/temp_folder.ts";

const STEPS = 20;

/** Whether a message contains an encoded batch. */
function holdsPayload(value: unknown): boolean {
  if (value instanceof Payload) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(holdsPayload);
}

Deno.test("a trainer's batches come straight from the workers, none through the main thread", async () => {
  await using temporary = await TempFolder.make();
  const directory = temporary.path;
  const { files } = await generateText({ directory, count: 200 });
  const pipeline: TextPipeline = { kind: "text", files, batchSize: 8 };
  {
    await using deployment = await Deployment.start(new AbortController().signal, { workers: 2 });
    const { cluster } = deployment;
    const seen: Envelope[] = [];
    cluster.fleet.home.inspect((event) => {
      if ("envelope" in event) seen.push(event.envelope);
    });
    const payloads = () => seen.filter((envelope) => holdsPayload(envelope)).length;

    const trainer = await deployment.trainer();
    await trainer.open({ pipeline, place: "service" });
    const progress: number[] = [];
    const result = await trainer.train({
      step: { constantMs: 10, perTokenMs: 0 },
      batches: STEPS,
      monitor: deployment.monitor(({ batches }) => progress.push(batches)),
      record: true,
    });
    assertEquals(result.batches, STEPS);
    const workers = [0, 1].map((index) => `${cluster.address}-worker-${index}`);
    const sources = Object.keys(result.arrivals);
    assert(sources.length > 0 && sources.every((name) => workers.includes(name)), `${sources}`);
    assert(progress.length > 0, "the main thread heard of progress");
    assert(seen.length > 0);
    assertEquals(payloads(), 0);

    // Like a thread that stood still for the time to be measured.
    const still = await trainer.train({ step: { constantMs: 1, perTokenMs: 0 }, durationMs: 0 });
    assert(still.batches === 1 && still.elapsedMs > 0, "a rate needs a batch");

    // A client on the main thread does receive batches there: the count would include them.
    await using iterator = pipelineOf(pipeline).distribute({ service: cluster }).iterator();
    await iterator.next();
    assert(payloads() > 0);
  }
});
