/** Wrong parts of a distributed save. */
import { SaveMode } from "../../actors/dispatcher/modes/save/save.ts";
import { namedBySaveFolder } from "../../actors/dispatcher/modes/save/save_folder.ts";
import type { JournalRecord } from "../../actors/dispatcher/journal/records.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import type { NewFiles } from "../../data/host.ts";
import { END } from "../../data/iterator.ts";
import { LeatError } from "../../core/error.ts";
import { TailLoadNode } from "../../data/saved/tail_load.ts";
import { Ledger } from "../../data/saved/ledger.ts";
import type { FaultOptions } from "../faults/options.ts";
import { SharedFiles } from "../engine/shared_files.ts";
import { changed, type Mutant } from "./mutant.ts";

/** Delay until a file exists after it was reported, in ms. */
const WRITING_MS = 300;

/** A network without loss and congestion. */
const CALM: Partial<FaultOptions> = {
  lossProbability: 0,
  reorderProbability: 0,
  connectFailureProbability: 0,
};

/** The mutants of this module. */
export const SAVING_MUTANTS: readonly Mutant[] = [
  {
    name: "commit-before-sync",
    wrong: "a worker that reports a chunk as committed before the file exists",
    workload: "saving",
    install: () =>
      changed(SharedFiles.prototype, ({ of }) => ({
        of(life) {
          const { files, newFiles } = of.call(this, life);
          const later = (fn: () => void) => void life.after(WRITING_MS, "file written", fn);
          return { files, newFiles: lateFiles(newFiles, later) };
        },
      })),
  },
  {
    name: "ignore-failed-commits",
    wrong: "a worker that takes a file for committed although the storage has failed to",
    workload: "storage",
    crashes: [],
    install: () =>
      changed(SharedFiles.prototype, ({ of }) => ({
        of(life) {
          const { files, newFiles } = of.call(this, life);
          return { files, newFiles: deafFiles(newFiles) };
        },
      })),
  },
  {
    name: "keep-files",
    wrong: "a save that removes no data files, neither of dead workers nor of replaced datasets",
    workload: "saving",
    install: () =>
      changed(SharedFiles.prototype, ({ of }) => ({
        of(life) {
          const { files, newFiles } = of.call(this, life);
          const remove = (path: string) => {
            if (!/\.(tfrecord|run|rest)$/.test(path)) newFiles.remove(path);
          };
          return { files, newFiles: { ...newFiles, remove } };
        },
      })),
  },
  {
    name: "forget-lost-chunks",
    wrong: "a dispatcher that never reassigns the work of a lost task",
    workload: "saving",
    install: () =>
      changed(DispatcherState.prototype, ({ apply }) => ({
        apply(record: JournalRecord) {
          const saves = record.type === "task_ended"
            ? [...this.iterations.values()].map((iteration) => ({
              iteration,
              saving: iteration.saving,
            }))
            : [];
          for (const { iteration } of saves) iteration.saving = null;
          apply.call(this, record);
          for (const { iteration, saving } of saves) iteration.saving = saving;
        },
      })),
  },
  {
    name: "end-for-error",
    wrong: "a reader of a growing folder that takes an abandoned save for a finished one",
    workload: "saving",
    install: () =>
      changed(TailLoadNode.prototype, ({ makeIterator }) => ({
        makeIterator(context) {
          const iterator = makeIterator.call(this, context);
          const next = iterator.next.bind(iterator);
          iterator.next = () => {
            const pulled = next();
            return pulled instanceof Promise ? pulled.catch(() => END) : pulled;
          };
          return iterator;
        },
      })),
  },
  {
    name: "enter-unlocked",
    wrong:
      "a writer of a distributed save that checks the owner, but enters its runs after another took over",
    workload: "saving",
    seed: 347,
    // The next owner has to be quick.
    crashes: [],
    faults: CALM,
    install: () =>
      changed(Ledger.prototype, {
        async enterOnce(id, entry, check) {
          for (;;) {
            check(await this.head());
            const known = await this.entry(id, entry.number);
            if (known !== undefined && known.joint?.upTo === entry.joint?.upTo) return known;
            try {
              await this.enter(id, entry);
              return entry;
            } catch (error) {
              // Another writer does the same.
              if (LeatError.from(error).code !== "already_exists") throw error;
            }
          }
        },
      }),
  },
  {
    name: "save-each-for-itself",
    wrong:
      "a dispatcher that gives each client a save of its own, so that one takes over the other's",
    workload: "saving",
    install: () =>
      changed(SaveMode.prototype, {
        withName(request) {
          const { jobName, ...named } = namedBySaveFolder(request);
          return { ...named, jobName: `${jobName} for ${request.requestId}` };
        },
      }),
  },
];

function lateFiles(newFiles: NewFiles, later: (fn: () => void) => void): NewFiles {
  return {
    ...newFiles,
    create: async (path) => {
      const file = await newFiles.create(path);
      return {
        ...file,
        commit: () => {
          later(() => void file.commit());
          return Promise.resolve();
        },
      };
    },
  };
}

function deafFiles(newFiles: NewFiles): NewFiles {
  return {
    ...newFiles,
    create: async (path) => {
      const file = await newFiles.create(path);
      return { ...file, commit: () => file.commit().catch(() => {}) };
    },
  };
}
