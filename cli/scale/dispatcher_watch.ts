/**
 * Records a simulated dispatcher's messages, their CPU time on this machine, and its journal.
 */
import type { Journal } from "../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { encodeSnapshot } from "../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import type { Actor } from "../../actors/runtime/actor.ts";
import type { MethodOf } from "../../actors/runtime/protocol.ts";

/** Limit of the times that are retained for each method, for the median. */
const TIMES_MAX = 4_096;

type Handler = (request: never, delivery: never) => unknown;

/** Records what a simulated dispatcher does. */
export class DispatcherWatch {
  /** How many messages were handled so far. */
  handled = 0;
  /** The tasks that workers have reported since the dispatcher last started. */
  readonly reportedTasks = new Set<number>();
  readonly #times = new Map<string, number[]>();
  readonly #records: JournalRecord[] = [];

  readonly wrapActor = (actor: Actor<DispatcherProtocol>): Actor<DispatcherProtocol> => {
    this.reportedTasks.clear();
    const handlers = Object.entries(actor.handlers).map(([method, handler]) =>
      [method, this.#timed(method, handler as Handler)] as const
    );
    return { ...actor, handlers: Object.fromEntries(handlers) as typeof actor.handlers };
  };

  readonly wrapJournal = (journal: Journal): Journal => ({
    append: (record) => {
      this.#records.push(record);
      journal.append(record);
    },
    committed: () => journal.committed(),
    close: () => journal.close(),
  });

  /**
   * Returns the median time that the dispatcher takes for a message of this kind on this machine, in
   * µs. The median, because other programs run, too.
   */
  medianUs(method: MethodOf<DispatcherProtocol>): number {
    const times = (this.#times.get(method) ?? []).toSorted((a, b) => a - b);
    return 1_000 * (times[times.length >> 1] ?? NaN);
  }

  /** Returns the size of the dispatcher's state in a snapshot. */
  stateBytes(): number {
    const state = new DispatcherState();
    for (const record of this.#records) state.apply(record);
    return encodeSnapshot(state.snapshot()).byteLength;
  }

  #timed(method: string, handler: Handler): Handler {
    const times = this.#times.getOrInsert(method, []);
    return (request, delivery) => {
      this.#recordTasks(request);
      const startMs = performance.now();
      try {
        return handler(request, delivery);
      } finally {
        this.handled++;
        if (times.push(performance.now() - startMs) > TIMES_MAX) times.splice(0, TIMES_MAX / 2);
      }
    };
  }

  /** Records tasks that request a split, or that a worker's heartbeat names. */
  #recordTasks(request: unknown): void {
    const { taskId, worker, tasks } = (request ?? {}) as {
      taskId?: number;
      worker?: unknown;
      tasks?: readonly { readonly taskId: number }[];
    };
    if (taskId !== undefined) this.reportedTasks.add(taskId);
    if (worker !== undefined) tasks?.forEach((task) => this.reportedTasks.add(task.taskId));
  }
}
