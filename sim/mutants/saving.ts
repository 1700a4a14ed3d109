/**
 * Wrong parts of a save by the workers of a service.
 *
 * @module
 */
import type { JournalRecord } from "../../actors/dispatcher/records.ts";
import { DispatcherState } from "../../actors/dispatcher/state.ts";
import type { NewFiles } from "../../data/host.ts";
import { SharedFiles } from "../shared_files.ts";
import { changed, type Mutant } from "./mutant.ts";

/** How long a file that was said to be there takes to be, in ms. */
const WRITING_MS = 300;

/** See the module. */
export const SAVING_MUTANTS: readonly Mutant[] = [
  {
    name: "commit-before-sync",
    wrong: "a worker that says a chunk is committed before the file is there",
    workload: "saving",
    install: () => {
      const { of } = SharedFiles.prototype;
      return changed(SharedFiles.prototype, {
        of(life) {
          const { files, newFiles } = of.call(this, life);
          const later = (fn: () => void) => void life.after(WRITING_MS, "file written", fn);
          return { files, newFiles: lateFiles(newFiles, later) };
        },
      });
    },
  },
  {
    name: "forget-lost-chunks",
    wrong: "a dispatcher that never has the work of a lost task done by another",
    workload: "saving",
    install: () => {
      const { apply } = DispatcherState.prototype;
      return changed(DispatcherState.prototype, {
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
      });
    },
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
