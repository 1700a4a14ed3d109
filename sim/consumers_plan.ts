/**
 * What the consumers of a simulated DETERMINISTIC stream are, and what they read.
 *
 * @module
 */
import type { StreamChecker } from "./checkers/stream.ts";
import type { SimNode } from "./node.ts";
import { type PipelineName, streamOf } from "./ordered_pipelines.ts";
import type { SimRandom } from "./random.ts";

/** What is read, and how. */
export interface ConsumersPlan {
  readonly pipeline: PipelineName;
  /** Whether each epoch has an iterator of its own. */
  readonly areApart: boolean;
  /** Whether each start of all consumers has a name. */
  readonly areNamed: boolean;
  readonly epochs: readonly (readonly string[])[];
}

/** One of those that read the stream. */
export interface Consumer {
  readonly index: number;
  /** Where it may run, and where it does. */
  readonly nodes: readonly string[];
  active: string;
  readonly stream: StreamChecker;
  /** Tokens by their positions, in the order of these, on a disk that all its nodes reach. */
  readonly saved: Map<number, Place>;
  hasEnded: boolean;
}

/** Where to go on. */
export interface Place {
  readonly token: Uint8Array;
  /** Of the iterators of one dataset. */
  readonly epoch: number;
}

/** One in which a consumer runs, on one of its nodes. */
export interface Process {
  readonly node: SimNode;
  /** Names it. */
  readonly who: string;
  readonly luck: SimRandom;
  /** Whether it lives, and no other is in its stead. */
  isActive(): boolean;
}

/** The canonical streams of the first so many. */
export async function epochsOf(pipeline: PipelineName, count: number): Promise<string[][]> {
  const epochs: string[][] = [];
  for (let before = 0; epochs.length < count;) {
    const all = await streamOf(pipeline, epochs.length + 1);
    epochs.push(all.slice(before));
    before = all.length;
  }
  return epochs;
}
