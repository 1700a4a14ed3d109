/** Reads what snapshots of earlier versions hold of streams: an entry for every consumer index. */
import type { Iteration, StreamRun } from "../../state/entities.ts";
import type { Ordered, OrderedConsumer, OrderedConsumers } from "../mode_state.ts";
import type { ConsumerState } from "./consumers_state.ts";

interface ListedConsumer extends OrderedConsumer {
  readonly state: ConsumerState;
}

type ListedOr<T> = T | readonly ListedConsumer[];

/** An iteration of a snapshot, with its consumers as they are kept now. */
export function restoredIteration(iteration: Iteration): Iteration {
  const consumers: ListedOr<Ordered["consumers"]> = iteration.ordered?.consumers ?? null;
  if (!Array.isArray(consumers)) return iteration;
  return { ...iteration, ordered: { ...iteration.ordered!, consumers: sparse(consumers) } };
}

function sparse(listed: readonly ListedConsumer[]): OrderedConsumers {
  const reading: Record<number, OrderedConsumer> = {};
  const left: number[] = [];
  let start = 0;
  for (const [index, { state, mark, done }] of listed.entries()) {
    if (state === "reading") reading[index] = { mark, done };
    else if (state === "left") left.push(index);
    else start = mark;
  }
  return { count: listed.length, mark: start, reading, left };
}

/** A run of a snapshot, with the repetitions of those consumers that have finished some. */
export function restoredRun(run: StreamRun): StreamRun {
  const passed = run.passed.map(({ jobName, repetitions }) => {
    const finished = Object.entries(repetitions).filter(([, repetition]) => repetition >= 0);
    return { jobName, repetitions: Object.fromEntries(finished) as Record<number, number> };
  });
  return { ...run, passed };
}
