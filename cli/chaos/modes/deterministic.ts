/**
 * A DETERMINISTIC job. It contains all operators whose output could change after the death of a
 * worker, and its stream must be the same each time.
 */
import { createHash } from "node:crypto";
import { Dataset, LeatError, type Tensor } from "../../../mod.ts";
import { StreamChecker } from "../../../sim/checkers/stream.ts";
import type { DrillContext, DrillFigures, JobSize } from "./drill.ts";

const BATCH_SIZE = 32;
const SHUFFLE_BUFFER = 64;
/** Largest batch with its envelope, in bytes. */
const BATCH_BYTES_MAX = 1_024;
/** Limit of a reader's open requests to one worker: those to a task, times the worker's tasks. */
const OPEN_PER_WORKER = 4;

/** The limits of the reader. They are so small that its buffer is full most of the time. */
export const WINDOW = {
  splits: 32,
  bytes: 8 * 1_024,
  /** Limit of the bytes in the buffer, including batches that were requested before it was full. */
  bytesWith: (workers: number): number =>
    WINDOW.bytes + workers * OPEN_PER_WORKER * BATCH_BYTES_MAX,
};

/** An expected stream. */
export interface KnownStream {
  /** The digest of each batch. */
  readonly batches: readonly string[];
  /** The digest of all batches. */
  readonly hash: string;
}

/** Reads the job once without faults, for comparison. */
export async function readUndisturbed(around: DrillContext): Promise<KnownStream> {
  using reader = open(around);
  const batches: string[] = [];
  for await (const batch of jobOf(around.size, reader.address)) {
    batches.push(digestOf(batch));
    await around.step(0);
  }
  if (batches.length === 0) throw new LeatError("data_loss", "The stream was empty");
  return { batches, hash: hashOf(batches) };
}

/** Reads the job, and compares it with the expected stream. */
export async function drillDeterministic(
  around: DrillContext,
  wanted: KnownStream,
): Promise<DrillFigures & { readonly hash: string }> {
  using reader = open(around);
  const stream = new StreamChecker(wanted.batches, around.findings("stream"));
  const found: string[] = [];
  for await (const batch of jobOf(around.size, reader.address)) {
    const digest = digestOf(batch);
    stream.took(found.length, digest, "the reader");
    found.push(digest);
    await around.step(found.length / wanted.batches.length);
  }
  stream.ended(found.length, "the reader");
  const hash = hashOf(found);
  return {
    ...{ hash, delivered: found.length },
    remark: `hash ${hash} (${hash === wanted.hash ? "same" : "DIFFERENT"})`,
  };
}

function open({ openReader }: DrillContext) {
  return openReader("deterministic", { bufferBytesMax: WINDOW.bytes });
}

/** The job: a shuffle, random numbers for each element, a filter that varies splits' lengths, and batches. */
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

/** Shape, dtype and values of a batch, as a prefix of their SHA-256. */
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
