/** Why functions, and segments of pipelines, run on the thread of their pipeline, for `explain()`. */
import { LeatError } from "../../core/error.ts";
import type { IteratorStats } from "../iterators/stats.ts";
import type { DatasetNode } from "../node.ts";
import { autotuneOf, threadsOf } from "../operators/options.ts";
import { coresOf } from "../autotune/options.ts";
import { NodeFunction } from "../udf/call.ts";
import { serializeGraph } from "../wire.ts";

/** A sentence for each function or segment that cannot leave. Empty where none should. */
export function obstaclesOf(root: DatasetNode, stats: IteratorStats | undefined): string[] {
  if (threadsOf(root) === false || coresOf(autotuneOf(root)) === 1) return [];
  const sentences: string[] = [];
  let number = 0;
  const visit = (node: DatasetNode, isServed: boolean): void => {
    const operator = number++;
    const obstacle = isServed
      ? undefined
      : stats?.[operator]?.threads?.obstacle ?? obstacleOf(node);
    if (obstacle !== undefined) {
      const name = `${node.kind} (operator ${operator})`;
      const what = node.attributes["thread"] === true ? "runs" : "calls its function";
      sentences.push(`${name} ${what} on the thread of the pipeline. ${obstacle}`);
    }
    for (const input of node.inputs) visit(input, isServed || node.division === "served");
  };
  visit(root, false);
  return sentences;
}

function obstacleOf(node: DatasetNode): string | undefined {
  if (node.attributes["thread"] === true) return messageOf(() => serializeGraph(node));
  const { callsSideBySide, opensDatasets } = node.adviceFacts;
  const isParallel = callsSideBySide && node.attributes["numParallelCalls"] !== undefined;
  // Datasets that functions make are not sent between threads.
  if (!isParallel || opensDatasets) return undefined;
  const fn = Object.values(node.attributes).find((value) => value instanceof NodeFunction);
  if (fn === undefined || !fn.mayTravel) return undefined;
  return messageOf(() => fn.travelling);
}

/** The message of the error that `send` throws. */
function messageOf(send: () => unknown): string | undefined {
  try {
    send();
    return undefined;
  } catch (error) {
    return LeatError.from(error).message;
  }
}
