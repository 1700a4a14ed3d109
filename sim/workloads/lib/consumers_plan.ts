/** The consumers of a simulated DETERMINISTIC stream, and what they read. */
import type { StreamChecker } from "../../checkers/stream.ts";
import type { SimNode } from "../../engine/node.ts";
import { type PipelineName, streamOf } from "../../reference/ordered_pipelines.ts";
import type { SimRandom } from "../../engine/random.ts";

/** What is read, and how. */
export interface ConsumersPlan {
  readonly pipeline: PipelineName;
  /** Whether each epoch has its own iterator. */
  readonly areApart: boolean;
  /** Whether each start of all consumers has a name. */
  readonly areNamed: boolean;
  readonly epochs: readonly (readonly string[])[];
}

/** One reader of the stream. */
export interface Consumer {
  readonly index: number;
  /** The nodes where it may run, and its current one. */
  readonly nodes: readonly string[];
  active: string;
  readonly stream: StreamChecker;
  /** Its checkpoints by position, in order, on a disk that all its nodes share. */
  readonly saved: Map<number, Checkpoint>;
  /** Its position at the end of each epoch. */
  readonly ends: readonly number[];
  /** Number of elements that it has received, including those before the checkpoint it was restored from. */
  position: number;
  hasEnded: boolean;
}

interface Checkpoint {
  readonly token: Uint8Array;
  /** The epoch, if the iterators of one dataset are epochs. */
  readonly epoch: number;
}

/** A process that runs a consumer on one of its nodes. */
export interface Process {
  readonly node: SimNode;
  /** Its name. */
  readonly who: string;
  readonly rng: SimRandom;
  /** Whether it lives and was not replaced. */
  isActive(): boolean;
}

/** Returns the canonical streams of the first `count` epochs. */
export async function epochsOf(pipeline: PipelineName, count: number): Promise<string[][]> {
  const epochs: string[][] = [];
  for (let before = 0; epochs.length < count;) {
    const all = await streamOf(pipeline, epochs.length + 1);
    epochs.push(all.slice(before));
    before = all.length;
  }
  return epochs;
}
