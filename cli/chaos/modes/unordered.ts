/**
 * Jobs whose elements go to the first reader that asks. Under DYNAMIC, each element must come at most
 * once, and exactly once if no worker is lost. Under OFF, the same holds for each worker's stream, if
 * no worker is stopped either.
 */
import { Dataset, type Tensor } from "../../../mod.ts";
import { DeliveryChecker } from "../../../sim/checkers/deliveries.ts";
import type { DrillContext, DrillFigures } from "./drill.ts";

const BATCH_SIZE = 16;
const READERS = 2;

/** A batch: numbers, and the id of the task that produced each. */
interface Batch {
  readonly number: Tensor;
  readonly task: Tensor;
}

/** Reads the job once, with two readers. */
export async function drillUnordered(
  around: DrillContext,
  mode: "DYNAMIC" | "OFF",
): Promise<DrillFigures> {
  const { elements } = around.size;
  const expected = mode === "OFF" ? elements * around.workers : elements;
  const streams = new Map<unknown, DeliveryChecker>();
  const streamOf = (task: unknown) => {
    const key = mode === "OFF" ? task : "all";
    return streams.getOrInsertComputed(
      key,
      () => new DeliveryChecker(elements, around.findings("deliveries")),
    );
  };
  let delivered = 0;
  await Promise.all(Array.from({ length: READERS }, async (_, i) => {
    const consumer = `reader-${i + 1}`;
    using reader = around.openReader(consumer);
    for await (const { number, task } of jobOf(around, mode, reader.address)) {
      for (let i = 0; i < number.shape[0]!; i++) {
        const [element, from] = [Number(number.data[i]), Number(task.data[i])];
        streamOf(from).took({ element, consumer, timeMs: performance.now() });
        delivered++;
      }
      await around.step(Math.min(1, delivered / expected));
    }
  }));
  const isCut = mode === "OFF" && around.hasWorkerLeft;
  const hasLost = await around.hasLostWorker() || isCut;
  if (!hasLost) { for (const stream of streams.values()) stream.expectAll(); }
  const what = hasLost ? "at most once" : "exactly once";
  const of = mode === "OFF" ? ` of each of ${streams.size} streams` : "";
  return { delivered, remark: `${delivered} elements of ${expected}, each ${what}${of}` };
}

function jobOf(
  { size: { elements, work }, name }: DrillContext,
  processingMode: "DYNAMIC" | "OFF",
  service: string,
): Dataset<Batch> {
  const numbers = Dataset.range(elements).map((number, { work }) => {
    let value = number;
    for (let i = 0; i < work; i++) value = (Math.imul(value, 1_664_525) + 1_013_904_223) | 0;
    // Always 0, but it depends on all steps, so that none is optimised away.
    return { number, task: value & 0 };
  }, { captures: { work } });
  // Under OFF every task produces all elements, and adds its id.
  const told = processingMode === "DYNAMIC"
    ? numbers
    : Dataset.zip([numbers, Dataset.random().take(1).cache().repeat()])
      .map(([{ number }, task]) => ({ number, task }));
  return told.batch(BATCH_SIZE)
    .distribute({ service, processingMode, jobName: name }) as unknown as Dataset<Batch>;
}
