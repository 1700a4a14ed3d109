/** All mutants. */
import { CONSUMER_MUTANTS } from "./consumers.ts";
import { DISPATCHER_MUTANTS } from "./dispatcher.ts";
import { ELEMENT_MUTANTS } from "./elements.ts";
import { JOURNAL_MUTANTS } from "./journal.ts";
import type { Mutant } from "./mutant.ts";
import { OFFLOAD_MUTANTS } from "./offload.ts";
import { ORDERED_MUTANTS } from "./ordered.ts";
import { PIPELINE_MUTANTS } from "./pipelines.ts";
import { ROUNDS_MUTANTS } from "./rounds.ts";
import { SAVING_MUTANTS } from "./saving.ts";
import { SCALING_MUTANTS } from "./scaling.ts";
import { STATIC_MUTANTS } from "./static.ts";
import { WINDOW_MUTANTS } from "./windows.ts";

export const MUTANTS: ReadonlyMap<string, Mutant> = new Map(
  [
    ...JOURNAL_MUTANTS,
    ...DISPATCHER_MUTANTS,
    ...ELEMENT_MUTANTS,
    ...ORDERED_MUTANTS,
    ...ROUNDS_MUTANTS,
    ...WINDOW_MUTANTS,
    ...SAVING_MUTANTS,
    ...STATIC_MUTANTS,
    ...PIPELINE_MUTANTS,
    ...CONSUMER_MUTANTS,
    ...SCALING_MUTANTS,
    ...OFFLOAD_MUTANTS,
  ].map((mutant) => [mutant.name, mutant]),
);
