/**
 * Checks a DETERMINISTIC job: its stream must be the same each time. It contains operators whose output
 * could change if a worker dies: shuffle, a random map, a filter and batch.
 */
import { createHash } from "node:crypto";
import { Dataset, LeatError, type Tensor } from "../../../mod.ts";
import { StreamChecker } from "../../../sim/checkers/stream.ts";
import type { DrillContext, DrillFigures, JobSize } from "./drill.ts";

const BATCH_SIZE = 32;
const SHUFFLE_BUFFER = 64;
/** The size of the largest batch with its envelope, in bytes. */
const BATCH_BYTES_MAX = 1_024;
/** Limit of a reader's open requests to one worker, for all its tasks together. */
const OPEN_PER_WORKER = 4;

/** The limits of the reader. They are so small that its buffer is full most of the time. */
export const WINDOW = {
  splits: 32,
  bytes: 8 * 1_024,
  /** Limit of the bytes in the buffer, with batches that were requested before the buffer was full. */
  bytesWith: (workers: number): number =>
    WINDOW.bytes + workers * OPEN_PER_WORKER * BATCH_BYTES_MAX,
};

/** An expected stream. */
export interface ExpectedStream {
  /** The digest of each batch. */
  readonly batches: readonly string[];
  /** The digest of all batches. */
  readonly hash: string;
}

/** Reads the job once without faults, for comparison. */
export async function readUndisturbed(context: DrillContext): Promise<ExpectedStream> {
  using reader = open(context);
  const batches: string[] = [];
  for await (const batch of jobOf(context.size, reader.address)) {
    batches.push(digestOf(batch));
    await context.step(0);
  }
  if (batches.length === 0) throw new LeatError("data_loss", "The stream was empty");
  return { batches, hash: hashOf(batches) };
}

/** Reads the job, and compares it with the expected stream. */
export async function drillDeterministic(
  context: DrillContext,
  expected: ExpectedStream,
): Promise<DrillFigures & { readonly hash: string }> {
  using reader = open(context);
  const stream = new StreamChecker(expected.batches, context.findings("stream"));
  const received: string[] = [];
  for await (const batch of jobOf(context.size, reader.address)) {
    const digest = digestOf(batch);
    stream.took(received.length, digest, "the reader");
    received.push(digest);
    await context.step(received.length / expected.batches.length);
  }
  stream.ended(received.length, "the reader");
  const hash = hashOf(received);
  return {
    ...{ hash, delivered: received.length },
    remark: `hash ${hash} (${hash === expected.hash ? "same" : "DIFFERENT"})`,
  };
}

function open({ openReader }: DrillContext) {
  return openReader("deterministic", { bufferBytesMax: WINDOW.bytes });
}

/** The job: a shuffle, random numbers, a filter that makes splits differ in length, and batches. */
function jobOf({ elements, work }: JobSize, service: string): Dataset<Tensor> {
  return Dataset.range(elements)
    .shuffle(SHUFFLE_BUFFER)
    .map((x, { random, work }) => {
      let value = x;
      for (let i = 0; i < work; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
      return x + (value >>> 8) / 2 ** 26 + random.next() / 4;
    }, { captures: { work } })
    .filter((x) => Math.floor(x) % 7 !== 0)
    .batch(BATCH_SIZE)
    .distribute({ service, processingMode: "DETERMINISTIC" });
}

/** Returns a prefix of the SHA-256 of a batch's shape, dtype and values. */
function digestOf({ shape, dtype, data }: Tensor): string {
  const { buffer, byteOffset, byteLength } = data as Float64Array;
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  return short(createHash("sha256").update(`${dtype} ${shape} `).update(bytes).digest("hex"));
}

function hashOf(digests: readonly string[]): string {
  return short(createHash("sha256").update(digests.join(" ")).digest("hex"));
}

function short(hex: string): string {
  return hex.slice(0, 16);
}
