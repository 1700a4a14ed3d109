/**
 * Pipelines for everything that could go wrong under DETERMINISTIC: random numbers, splits with few or
 * many elements, remainders, functions that fail. Their canonical streams are computed once.
 */
import { Dataset } from "../../data/dataset.ts";
import { referenceStream } from "./reference_stream.ts";

/** The pipelines. Their sources are so small that a split is one element, or one batch. */
const PIPELINES = {
  "random values, a filter and remainders": () =>
    Dataset.range(16)
      .flatMap((x, { Dataset }) => Dataset.range(10 * x, 10 * x + (x * 7) % 5))
      .shuffle(3)
      .map((x, { random }) => x + random.next() / 2)
      .filter((x) => Math.floor(x) % 6 !== 0)
      .batch(3)
      .map((batch, { random }) => ({ batch, luck: random.int(1_000) })),
  "whole batches": () => Dataset.range(57).map((x, { random }) => x + random.next() / 2).batch(3),
  "mostly empty splits": () => Dataset.range(30).filter((x) => x % 7 === 3),
  "functions that fail": () =>
    Dataset.range(14)
      .interleave((x, { Dataset }) => Dataset.range(x % 4).map((y) => x * 10 + y))
      .map((x) => {
        if (x % 10 === 1) throw new Error(`no ${x}`);
        return x;
      })
      .batch(2, { dropRemainder: true }),
  "no elements": () => Dataset.range(0).map((x) => x).batch(4),
};

export type PipelineName = keyof typeof PIPELINES;

export const PIPELINE_NAMES = Object.keys(PIPELINES) as [PipelineName, ...PipelineName[]];

export function pipelineOf(name: PipelineName): Dataset<unknown> {
  return PIPELINES[name]() as Dataset<unknown>;
}

const streams = new Map<string, Promise<string[]>>();

/** Returns the canonical stream of some epochs of a pipeline, as texts. */
export function streamOf(name: PipelineName, epochs: number): Promise<string[]> {
  return streams.getOrInsertComputed(
    `${epochs} ${name}`,
    () => referenceStream(PIPELINES[name], epochs),
  );
}
