/** Journals that lose or change records. */
import { LoggedJournal } from "../../actors/dispatcher/journal/journal.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import { changed, type Mutant, PerInstance } from "./mutant.ts";

/** The mutants of this module. */
export const JOURNAL_MUTANTS: readonly Mutant[] = [
  {
    name: "answer-before-append",
    wrong: "a dispatcher that appends a decision only when it makes the next one",
    workload: "dynamic",
    crashes: ["dispatcher"],
    install: () => {
      const held = new PerInstance<LoggedJournal, JournalRecord[]>(() => []);
      return changed(LoggedJournal.prototype, ({ append, close }) => ({
        append(record) {
          const waiting = held.of(this);
          waiting.push(record);
          if (waiting.length > 1) append.call(this, waiting.shift()!);
        },
        close() {
          for (const record of held.of(this).splice(0)) append.call(this, record);
          return close.call(this);
        },
      }));
    },
  },
  {
    name: "answer-before-sync",
    wrong: "a dispatcher that answers before its journal is on disk",
    workload: "dynamic",
    crashes: ["dispatcher"],
    install: () =>
      changed(LoggedJournal.prototype, ({ committed }) => ({
        committed() {
          committed.call(this)?.catch(() => {});
          return undefined;
        },
      })),
  },
  {
    name: "journal-another-split",
    wrong: "a journal that records for each split the one before it",
    workload: "dynamic",
    crashes: ["dispatcher"],
    install: () =>
      changed(LoggedJournal.prototype, ({ append }) => ({
        append(record) {
          if (record.type !== "split_assigned") return append.call(this, record);
          append.call(this, { ...record, index: Math.max(0, record.index - 1) });
        },
      })),
  },
  {
    name: "snapshot-without-requests",
    wrong: "a snapshot without the answers to tasks' split requests",
    workload: "dynamic",
    crashes: ["dispatcher"],
    // Compacts often and loses answers, so that requests are repeated after a crash.
    faults: { faultPointProbability: 0.5, lossProbability: 0.2 },
    install: () =>
      changed(DispatcherState.prototype, ({ snapshot }) => ({
        snapshot() {
          const whole = snapshot.call(this);
          return { ...whole, tasks: whole.tasks.map((task) => ({ ...task, requests: [] })) };
        },
      })),
  },
  {
    name: "snapshot-of-the-beginning",
    wrong: "a snapshot that resets the splits to the beginning",
    workload: "dynamic",
    crashes: ["dispatcher"],
    faults: { faultPointProbability: 0.5 },
    install: () =>
      changed(DispatcherState.prototype, ({ snapshot }) => ({
        snapshot() {
          const whole = snapshot.call(this);
          for (const { splits } of whole.iterations) {
            for (const cursor of splits?.cursors ?? []) cursor.next = 0;
          }
          return whole;
        },
      })),
  },
  {
    name: "replay-without-splits",
    wrong: "a dispatcher that does not replay which splits were assigned",
    workload: "dynamic",
    crashes: ["dispatcher"],
    install: () => notReplayed("split_assigned"),
  },
  {
    name: "replay-without-sequences",
    seed: 67,
    wrong: "a dispatcher that does not replay which splits of a DETERMINISTIC job are in progress",
    workload: "ordered",
    crashes: ["dispatcher"],
    install: () => notReplayed("sequence_assigned"),
  },
  {
    name: "forget-deaths",
    wrong: "a dispatcher that forgets at a restart how many runners a task has killed",
    workload: "poison",
    crashes: ["dispatcher", "dispatcher", "dispatcher"],
    install: () => {
      const { restore } = DispatcherState;
      const replay = notReplayed("runner_died");
      DispatcherState.restore = (snapshot) =>
        restore({
          ...snapshot,
          iterations: snapshot.iterations.map((iteration) => ({ ...iteration, deaths: [] })),
        });
      return {
        [Symbol.dispose]() {
          DispatcherState.restore = restore;
          replay[Symbol.dispose]();
        },
      };
    },
  },
];

/** Applies records of one type only when they are appended in this life. */
function notReplayed(type: JournalRecord["type"]): Disposable {
  const { append } = LoggedJournal.prototype;
  const { apply } = DispatcherState.prototype;
  const fresh = new WeakSet<JournalRecord>();
  const journal = changed(LoggedJournal.prototype, {
    append(record) {
      fresh.add(record);
      append.call(this, record);
    },
  });
  const state = changed(DispatcherState.prototype, {
    apply(record) {
      if (record.type !== type || fresh.has(record)) apply.call(this, record);
    },
  });
  return {
    [Symbol.dispose]() {
      state[Symbol.dispose]();
      journal[Symbol.dispose]();
    },
  };
}
