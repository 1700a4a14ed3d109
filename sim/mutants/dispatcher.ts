/**
 * Dispatchers that decide wrongly.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { JournalRecord } from "../../actors/dispatcher/records.ts";
import { splitCount } from "../../actors/dispatcher/split_table.ts";
import { DispatcherState } from "../../actors/dispatcher/state.ts";
import type { WatchEnd } from "../../actors/runtime/actor.ts";
import { Cell } from "../../actors/runtime/cell.ts";
import type { AnswerOf } from "../../actors/runtime/protocol.ts";
import { SimWorld } from "../world.ts";
import { changed, type Mutant, PerInstance, repliesChanged } from "./mutant.ts";

type WorkerNews = AnswerOf<DispatcherProtocol, "workerHeartbeat">;

/** See the module. */
export const DISPATCHER_MUTANTS: readonly Mutant[] = [
  {
    name: "forget-grants",
    wrong:
      "a dispatcher that forgets what a task's request was granted, and grants a repeated one anew",
    workload: "dynamic",
    crashes: ["dispatcher"],
    faults: { lossProbability: 0.2 },
    install: () =>
      applied((state, record) => {
        if (record.type !== "split_assigned") return;
        for (const ring of state.tasks.get(record.taskId)!.requests) ring.fill(0);
      }),
  },
  {
    name: "lost-split-twice",
    wrong: "a dispatcher that hands the last split of a lost task out again under DYNAMIC",
    workload: "dynamic",
    crashes: ["worker"],
    install: () =>
      applied((state, record) => {
        if (record.type !== "task_ended") return;
        for (const { splits } of state.iterations.values()) {
          for (const cursor of splits?.cursors ?? []) cursor.next = Math.max(0, cursor.next - 1);
        }
      }),
  },
  {
    name: "lose-what-is-left",
    wrong: "a dispatcher that loses with a task all splits that nobody was given yet",
    workload: "dynamic",
    crashes: ["worker"],
    install: () =>
      applied((state, record) => {
        if (record.type !== "task_ended") return;
        for (const { splits } of state.iterations.values()) {
          for (const [source, cursor] of splits?.cursors.entries() ?? []) {
            cursor.next = splitCount(splits!.bounds, source);
          }
        }
      }),
  },
  {
    name: "deaths-by-task",
    wrong: "a dispatcher that counts the runners that died on each worker by themselves",
    workload: "poison",
    crashes: ["worker", "worker"],
    install: () =>
      applied((state, record) => {
        if (record.type !== "runner_died") return;
        for (const iteration of state.iterations.values()) {
          iteration.deaths = iteration.deaths.map(({ place, runners }) => ({
            place,
            runners: runners.filter(({ taskId }) => taskId === record.taskId),
          }));
        }
      }),
  },
  {
    name: "one-epoch",
    wrong: "a dispatcher that has who comes to a later epoch join the first",
    workload: "epochs",
    crashes: [],
    install: () => {
      const { iterationOf } = DispatcherState.prototype;
      return changed(DispatcherState.prototype, {
        iterationOf(jobId) {
          return iterationOf.call(this, jobId, 0);
        },
      });
    },
  },
  {
    name: "keep-ended-tasks",
    seed: 8,
    wrong: "a dispatcher that does not tell workers which tasks have ended",
    workload: "ordered",
    install: () =>
      repliesChanged<WorkerNews>(
        ({ endedTasks }) => endedTasks !== undefined,
        (news) => ({ ...news, endedTasks: [] }),
      ),
  },
  {
    name: "silence-is-an-end",
    seed: 4,
    wrong: "a node that takes the actors for ended to which a link has fallen silent",
    workload: "dynamic",
    crashes: [],
    faults: { linkBreakProbability: 0.005 },
    install: () => watchesEnded("lost"),
  },
  {
    name: "no-grace",
    seed: 6,
    wrong: "a dispatcher that gives clients whose connection was closed no time to come back",
    workload: "dynamic",
    crashes: [],
    faults: { linkCloseProbability: 0.005 },
    install: () => watchesEnded("closed"),
  },
  {
    name: "leases-by-the-wall-clock",
    seed: 11,
    wrong:
      "a dispatcher, and all others, that measure silence by a clock which jumps ahead with the wall clock",
    workload: "dynamic",
    crashes: [],
    faults: { wallClockStepMaxMs: 3_600_000 },
    install: () => {
      const { nowMs, timer, stepWallClock } = SimWorld.prototype;
      const steps = new PerInstance<SimWorld, { byMs: number }>(() => ({ byMs: 0 }));
      return changed(SimWorld.prototype, {
        nowMs() {
          return nowMs.call(this) + steps.of(this).byMs;
        },
        // Timers wait as long as they did.
        timer(delayMs, fn) {
          return timer.call(this, delayMs - steps.of(this).byMs, fn);
        },
        stepWallClock(byMs) {
          steps.of(this).byMs += Math.max(0, byMs);
          stepWallClock.call(this, byMs);
        },
      });
    },
  },
];

/** Whoever watches is told that its target has ended, where that is not known. */
function watchesEnded(taken: WatchEnd): Disposable {
  const { watch } = Cell.prototype;
  return changed(Cell.prototype, {
    watch(target, down) {
      return watch.call(
        this,
        target,
        (error, end) => down(error, end === taken ? "ended" : end),
      );
    },
  });
}

/** Does something to the state after each record. */
function applied(after: (state: DispatcherState, record: JournalRecord) => void): Disposable {
  const { apply } = DispatcherState.prototype;
  return changed(DispatcherState.prototype, {
    apply(record) {
      apply.call(this, record);
      after(this, record);
    },
  });
}
