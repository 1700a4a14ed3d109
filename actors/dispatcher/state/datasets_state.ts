/** How records change the datasets. */
import type { RecordOf } from "../journal/records.ts";
import { need, type Tables } from "./tables.ts";

export function registered(tables: Tables, record: RecordOf<"dataset_registered">): void {
  const { type: _, transient = false, owner, ...dataset } = record;
  tables.datasetOwners.set(dataset.datasetId, owner);
  if (transient) tables.transient.add(dataset.datasetId);
  tables.addDataset(dataset);
}

export function kept({ transient }: Tables, { datasetId }: RecordOf<"dataset_kept">): void {
  transient.delete(datasetId);
}

export function forgotten(tables: Tables, record: RecordOf<"dataset_forgotten">): void {
  tables.removeDataset(need(tables.datasets.get(record.datasetId), record));
}
