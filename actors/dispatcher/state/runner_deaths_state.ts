/** How records change the deaths of runners. */
import type { Deaths, Iteration, RunnerDeath } from "./entities.ts";
import type { RecordOf } from "../journal/records.ts";
import { need, type Tables } from "./tables.ts";

/** The place of deaths of runners that listed the splits, or began the save; no piece has it. */
export const LISTING = -1;

export function runnerDied({ tasks, iterations }: Tables, record: RecordOf<"runner_died">): void {
  const { taskId, number, place, code, message } = record;
  const task = need(tasks.get(taskId), record);
  const iteration = need(iterations.get(task.iterationId), record);
  task.runnerDeaths = number;
  addDeath(iteration, place, { worker: task.worker, taskId, code, message });
}

export function listerDied({ iterations }: Tables, record: RecordOf<"lister_died">): void {
  const { iterationId, worker, code, message } = record;
  const iteration = need(iterations.get(iterationId), record);
  addDeath(iteration, LISTING, { worker, taskId: null, code, message });
}

function addDeath(iteration: Iteration, place: number | null, death: RunnerDeath): void {
  const known = deathsAt(iteration, place);
  const others = iteration.deaths.filter((deaths) => deaths !== known);
  iteration.deaths = [...others, { place, runners: [...known.runners, death] }];
}

export function deathsAt({ deaths }: Pick<Iteration, "deaths">, place: number | null): Deaths {
  return deaths.find((each) => each.place === place) ?? { place, runners: [] };
}

/** Forgets the deaths at pieces of work that are done. */
export function survived(iteration: Iteration, isDone: (place: number | null) => boolean): void {
  if (iteration.deaths.length === 0) return;
  iteration.deaths = iteration.deaths.filter(({ place }) => !isDone(place));
}
