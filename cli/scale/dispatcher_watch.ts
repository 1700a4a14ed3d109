/**
 * Watches a simulated dispatcher: its messages, their CPU time on this machine, and its journal.
 */
import type { Journal } from "../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import { encodeSnapshot } from "../../actors/dispatcher/journal/snapshot.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import type { Actor } from "../../actors/runtime/actor.ts";
import type { MethodOf } from "../../actors/runtime/protocol.ts";

/** How many of the newest times of each method are kept, for the median. */
const TIMES_MAX = 4_096;

type Handler = (request: never, delivery: never) => unknown;

/** Watches a simulated dispatcher. */
export class DispatcherWatch {
  /** Messages handled so far. */
  handled = 0;
  /** Tasks that the restarted dispatcher has learned of from their workers. */
  readonly tasksHeard = new Set<number>();
  readonly #times = new Map<string, number[]>();
  readonly #records: JournalRecord[] = [];

  readonly wrapActor = (actor: Actor<DispatcherProtocol>): Actor<DispatcherProtocol> => {
    this.tasksHeard.clear();
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
   * CPU time of a message of that kind on this machine, in µs: the median, because other programs
   * run too.
   */
  medianUs(method: MethodOf<DispatcherProtocol>): number {
    const times = (this.#times.get(method) ?? []).toSorted((a, b) => a - b);
    return 1_000 * (times[times.length >> 1] ?? NaN);
  }

  /** Size of the dispatcher's state in a snapshot. */
  stateBytes(): number {
    const state = new DispatcherState();
    for (const record of this.#records) state.apply(record);
    return encodeSnapshot(state.snapshot()).byteLength;
  }

  #timed(method: string, handler: Handler): Handler {
    const times = this.#times.getOrInsert(method, []);
    return (request, delivery) => {
      this.#note(request);
      const startMs = performance.now();
      try {
        return handler(request, delivery);
      } finally {
        this.handled++;
        if (times.push(performance.now() - startMs) > TIMES_MAX) times.splice(0, TIMES_MAX / 2);
      }
    };
  }

  /** Records a task that requests a split, or that its worker names. */
  #note(request: unknown): void {
    const { taskId, worker, tasks } = (request ?? {}) as {
      taskId?: number;
      worker?: unknown;
      tasks?: readonly { readonly taskId: number }[];
    };
    if (taskId !== undefined) this.tasksHeard.add(taskId);
    if (worker !== undefined) tasks?.forEach((task) => this.tasksHeard.add(task.taskId));
  }
}
