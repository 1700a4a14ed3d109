/** The state change of each record, from the record alone: no random numbers and no clock. */
import { LeatError } from "../../../core/error.ts";
import * as clients from "./clients_state.ts";
import * as datasets from "./datasets_state.ts";
import * as deaths from "./runner_deaths_state.ts";
import * as iterations from "./iterations_state.ts";
import { MODE_CHANGES } from "../modes/mode_records.ts";
import type { JournalRecord, RecordOf } from "../journal/records.ts";
import * as splits from "./splits_state.ts";
import type { Tables } from "./tables.ts";
import * as tasks from "./tasks_state.ts";
import * as workers from "./workers_state.ts";

type RecordType = JournalRecord["type"];
export type Change<T extends RecordType> = (tables: Tables, record: RecordOf<T>) => void;

export const CHANGES: { readonly [T in RecordType]: Change<T> } = {
  cluster_created: createCluster,
  dispatcher_started: (tables) => void tables.lives++,

  dataset_registered: datasets.registered,
  dataset_kept: datasets.kept,
  dataset_forgotten: datasets.forgotten,

  job_created: iterations.jobCreated,
  iteration_created: iterations.created,
  iteration_failed: iterations.failed,
  iteration_finished: iterations.finished,
  iteration_collected: iterations.collected,

  worker_registered: workers.registered,
  worker_lost: workers.lost,

  client_opened: clients.opened,
  client_released: clients.released,

  task_created: tasks.created,
  task_ready: tasks.ready,
  task_completed: tasks.completed,
  task_ended: tasks.ended,
  runner_died: deaths.runnerDied,

  splits_listed: splits.listed,

  ...MODE_CHANGES,
};

/**
 * Applies a record.
 * @throws {LeatError} `data_loss` for a record that does not follow from those before it,
 *   `unimplemented` for one of an unknown type.
 */
export function applyRecord(tables: Tables, record: JournalRecord): void {
  const change = CHANGES[record.type] as Change<RecordType> | undefined;
  if (change === undefined) {
    throw new LeatError(
      "unimplemented",
      `The journal holds a record of the unknown kind "${record.type}"; use the version of the ` +
        `dispatcher that wrote it`,
    );
  }
  change(tables, record);
}

function createCluster(tables: Tables, { clusterId }: RecordOf<"cluster_created">): void {
  tables.clusterId = clusterId;
  // Workers and clients of an earlier journal may still run; ids must not collide with theirs.
  tables.lastIds.task = tables.lastIds.client = firstIdOf(clusterId);
}

/** The first task and client id of a cluster: 32 bits of the cluster's id. */
function firstIdOf(clusterId: string): number {
  return Number.parseInt(clusterId.slice(0, 8), 16);
}
