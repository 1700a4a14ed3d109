/** Takes all elements of a pipeline, for `reduce` and `save`. */
import type { IteratorContext } from "../context.ts";
import { type ElementIterator, END } from "../iterator.ts";
import { OperatorMeter } from "./stats.ts";
import { Stopwatch } from "./stopwatch.ts";

/**
 * Calls `take` with each element, one after the other, and awaits what it returns. The pipeline is
 * tuned meanwhile. The first error ends it.
 */
export async function takeAll(
  context: IteratorContext,
  elements: ElementIterator,
  take: (element: unknown) => unknown,
): Promise<void> {
  const { host, pacer, tuner } = context;
  const startedAtMs = host.nowMs();
  const held = new OperatorMeter("next", -1);
  const watch = new Stopwatch(host, held);
  const pull = () => elements.next();
  const consumption = () => {
    const { selfMs, waitMs } = held.figures;
    const waitedMs = selfMs + waitMs;
    return { waitedMs, consumerMs: host.nowMs() - startedAtMs - waitedMs };
  };
  for (;;) {
    const pulled = watch.time(pull);
    const element = pulled instanceof Promise ? await waitFor(pulled, held, context) : pulled;
    tuner.tick(consumption);
    if (element === END) return;
    const taken = take(element);
    if (taken instanceof Promise) await taken;
    if (pacer.due()) await pacer.yield();
  }
}

async function waitFor(
  pending: Promise<unknown>,
  held: OperatorMeter,
  { host }: IteratorContext,
): Promise<unknown> {
  const startedAtMs = host.nowMs();
  const element = await pending;
  held.waited(host.nowMs() - startedAtMs);
  return element;
}
