/** Dispatchers that decide wrongly. */
import type { JournalRecord, RecordOf } from "../../actors/dispatcher/journal/records.ts";
import { splitCount } from "../../data/sharding/split_table.ts";
import { MemberLinks } from "../../actors/dispatcher/liveness/member_links.ts";
import { ReachabilityProbe } from "../../actors/dispatcher/liveness/reachability_probe.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import type { WatchEnd } from "../../actors/runtime/actor.ts";
import { Cell } from "../../actors/runtime/cell.ts";
import type { WorkNews } from "../../actors/dispatcher/protocol_heartbeats.ts";
import { WANTED_TAG } from "../workloads/lib/targets.ts";
import { SimWorld } from "../world.ts";
import { changed, type Mutant, PerInstance, repliesChanged } from "./mutant.ts";

/** The bug happens once in this many calls. */
const CALLS_UNTIL_BUG = 5;

/** The mutants of this module. */
export const DISPATCHER_MUTANTS: readonly Mutant[] = [
  {
    name: "forget-grants",
    wrong:
      "a dispatcher that forgets its answers to split requests, and gives a repeated one a new split",
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
    name: "bug-now-and-then",
    wrong: "a dispatcher with a bug that ends it now and then, and is hidden by its restart",
    workload: "dynamic",
    crashes: [],
    install: () => {
      let calls = 0;
      return changed(DispatcherState.prototype, ({ iterationsFor }) => ({
        iterationsFor(worker) {
          if (++calls % CALLS_UNTIL_BUG === 0) throw new TypeError("a bug");
          return iterationsFor.call(this, worker);
        },
      }));
    },
  },
  {
    name: "lost-split-twice",
    wrong: "a dispatcher that assigns the last split of a lost task again under DYNAMIC",
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
    wrong: "a dispatcher that loses with a task all unassigned splits",
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
    name: "ignore-tags",
    wrong: "a dispatcher that gives tasks to workers without the tags that the job wants",
    workload: "dynamic",
    crashes: [],
    install: () => registeredAs((worker) => ({ ...worker, tags: [...worker.tags, WANTED_TAG] })),
  },
  {
    name: "ignore-private",
    wrong: "a dispatcher that gives all clients the tasks of private workers",
    workload: "dynamic",
    crashes: [],
    install: () => registeredAs((worker) => ({ ...worker, isPrivate: false })),
  },
  {
    name: "dial-nobody",
    wrong: "a dispatcher that does not check whether workers answer at their addresses",
    workload: "dynamic",
    crashes: [],
    install: () => changed(ReachabilityProbe.prototype, { check() {} }),
  },
  {
    name: "deaths-by-task",
    wrong: "a dispatcher that counts dead runners separately for each worker",
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
    name: "forget-listers",
    seed: 18,
    wrong: "a dispatcher that does not count runners that die while they list splits",
    workload: "poison",
    crashes: [],
    install: () =>
      applied((state, record) => {
        if (record.type !== "lister_died") return;
        state.iterations.get(record.iterationId)!.deaths = [];
      }),
  },
  {
    name: "one-epoch",
    wrong: "a dispatcher that makes readers of a later epoch join the first",
    workload: "epochs",
    crashes: [],
    install: () =>
      changed(DispatcherState.prototype, ({ iterationOf }) => ({
        iterationOf(jobId) {
          return iterationOf.call(this, jobId, 0);
        },
      })),
  },
  {
    name: "keep-ended-tasks",
    seed: 8,
    wrong: "a dispatcher that does not tell workers which tasks have ended",
    workload: "ordered",
    install: () =>
      repliesChanged<WorkNews>(
        ({ kind }) => kind === "work",
        (news) => ({ ...news, endedTasks: [] }),
      ),
  },
  {
    name: "silence-is-an-end",
    seed: 4,
    wrong: "a node that treats actors as ended when the link to them times out",
    workload: "dynamic",
    crashes: [],
    faults: { linkBreakProbability: 0.005 },
    install: () => watchesEnded("lost"),
  },
  {
    name: "no-grace",
    seed: 6,
    wrong: "a dispatcher that gives clients with a closed connection no time to come back",
    workload: "dynamic",
    crashes: [],
    faults: { linkCloseProbability: 0.005 },
    install: () => watchesEnded("closed"),
  },
  {
    name: "grace-goes-on",
    seed: 43,
    wrong: "a dispatcher that gives up workers although they connected again within the grace",
    workload: "autoscaling",
    crashes: [],
    faults: { linkCloseProbability: 0.02 },
    install: () =>
      changed(MemberLinks.prototype as MemberLinks<unknown>, ({ watch }) => ({
        watch(key, actor) {
          const closedAtMs = this.closedAtMs.get(key);
          watch.call(this, key, actor);
          // Keys of workers are names, those of clients numbers.
          const isWorker = typeof key === "string";
          if (isWorker && closedAtMs !== undefined) this.closedAtMs.set(key, closedAtMs);
        },
      })),
  },
  {
    name: "leases-by-the-wall-clock",
    seed: 11,
    wrong:
      "a dispatcher, and all other actors, that measure timeouts by a clock that jumps with the wall clock",
    workload: "dynamic",
    crashes: [],
    faults: { wallClockStepMaxMs: 3_600_000 },
    install: () => {
      const steps = new PerInstance<SimWorld, { byMs: number }>(() => ({ byMs: 0 }));
      return changed(SimWorld.prototype, ({ nowMs, timer, stepWallClock }) => ({
        nowMs() {
          return nowMs.call(this) + steps.of(this).byMs;
        },
        // Timers keep their delay.
        timer(delayMs, fn) {
          return timer.call(this, delayMs - steps.of(this).byMs, fn);
        },
        stepWallClock(byMs) {
          steps.of(this).byMs += Math.max(0, byMs);
          stepWallClock.call(this, byMs);
        },
      }));
    },
  },
];

/** Reports to watchers that their target has ended, although that is unknown. */
function watchesEnded(reported: WatchEnd): Disposable {
  return changed(Cell.prototype, ({ watch }) => ({
    watch(target, down) {
      return watch.call(
        this,
        target,
        (error, end) => down(error, end === reported ? "ended" : end),
      );
    },
  }));
}

/** Registers workers as others than they are. */
function registeredAs(
  change: (worker: RecordOf<"worker_registered">) => RecordOf<"worker_registered">,
): Disposable {
  return changed(DispatcherState.prototype, ({ apply }) => ({
    apply(record) {
      apply.call(this, record.type === "worker_registered" ? change(record) : record);
    },
  }));
}

/** Changes the state after each record. */
function applied(after: (state: DispatcherState, record: JournalRecord) => void): Disposable {
  return changed(DispatcherState.prototype, ({ apply }) => ({
    apply(record) {
      apply.call(this, record);
      after(this, record);
    },
  }));
}
