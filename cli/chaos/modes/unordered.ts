/**
 * Checks jobs whose elements go to the first reader that requests them. Under DYNAMIC, each element
 * must arrive at most once, and exactly once if no worker is lost. Under OFF, the same holds for each
 * worker's stream, and "exactly once" also requires that no worker is stopped.
 */
import { Dataset, type Tensor } from "../../../mod.ts";
import { DeliveryChecker } from "../../../sim/checkers/deliveries.ts";
import type { DrillContext, DrillFigures } from "./drill.ts";

const BATCH_SIZE = 16;
const READERS = 2;

/** A batch of numbers, each with the id of the task that produced it. */
interface Batch {
  readonly number: Tensor;
  readonly task: Tensor;
}

/** What has come of one stream. */
interface Stream {
  readonly checker: DeliveryChecker;
  delivered: number;
}

/** Reads the job once, with two readers. */
export async function drillUnordered(
  context: DrillContext,
  mode: "DYNAMIC" | "OFF",
): Promise<DrillFigures> {
  const { elements } = context.size;
  const expected = mode === "OFF" ? elements * context.workers : elements;
  const streams = new Map<unknown, Stream>();
  const streamOf = (task: unknown) => {
    const key = mode === "OFF" ? task : "all";
    return streams.getOrInsertComputed(key, () => ({
      checker: new DeliveryChecker(elements, context.findings("deliveries")),
      delivered: 0,
    }));
  };
  let delivered = 0;
  await Promise.all(Array.from({ length: READERS }, async (_, i) => {
    const consumer = `reader-${i + 1}`;
    using reader = context.openReader(consumer);
    for await (const { number, task } of jobOf(context, mode, reader.address)) {
      for (let i = 0; i < number.shape[0]!; i++) {
        const [element, taskId] = [Number(number.data[i]), Number(task.data[i])];
        const stream = streamOf(taskId);
        stream.checker.took({ element, consumer, timeMs: performance.now() });
        stream.delivered++;
        delivered++;
      }
      await context.step(Math.min(1, delivered / expected));
    }
  }));
  const hasStreamEnded = mode === "OFF" && context.hasWorkerLeft;
  const isWhole = streams.size > 0 &&
    streams.values().every(({ delivered }) => delivered >= elements);
  const mayBeIncomplete = !isWhole && (hasStreamEnded || await context.hasLostWorker());
  if (!mayBeIncomplete) { for (const { checker } of streams.values()) checker.expectAll(); }
  const guarantee = mayBeIncomplete ? "at most once" : "exactly once";
  const scope = mode === "OFF" ? ` of each of ${streams.size} streams` : "";
  return { delivered, remark: `${delivered} elements of ${expected}, each ${guarantee}${scope}` };
}

function jobOf(
  { size: { elements, work }, name }: DrillContext,
  processingMode: "DYNAMIC" | "OFF",
  service: string,
): Dataset<Batch> {
  const numbers = Dataset.range(elements).map((number, { work }) => {
    let value = number;
    for (let i = 0; i < work; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
    // The task is always 0, but depends on all steps, so that none is optimised away.
    return { number, task: value & 0 };
  }, { captures: { work } });
  // Under OFF every task produces all elements, and adds its id.
  const identified = processingMode === "DYNAMIC"
    ? numbers
    : Dataset.zip([numbers, Dataset.random().take(1).cache().repeat()])
      .map(([{ number }, task]) => ({ number, task }));
  return identified.batch(BATCH_SIZE)
    .distribute({ service, processingMode, jobName: name }) as unknown as Dataset<Batch>;
}
