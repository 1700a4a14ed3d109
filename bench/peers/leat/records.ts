/** Pipelines that read TFRecords, four files at a time, and verify checksums. */
import { Dataset } from "../../../mod.ts";
import { type Pipelines, taking } from "./step.ts";

const BATCH = 256;

export const records: Pipelines = {
  "records-large": ({ images }) =>
    taking(Dataset.tfRecords([...images], { numParallelReads: 4 }).repeat(), () => 1),
  "records-small": ({ records }) =>
    taking(
      Dataset.tfRecords([...records], { numParallelReads: 4 }).batch(BATCH).repeat(),
      ({ shape }) => shape[0]!,
    ),
  "records-shuffle": ({ records }) =>
    taking(
      Dataset.tfRecords([...records], { numParallelReads: 4 }).shuffle(10_000).batch(BATCH)
        .repeat(),
      ({ shape }) => shape[0]!,
    ),
};
