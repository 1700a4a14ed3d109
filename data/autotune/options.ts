/** The option `autotune` of `withOptions`. */
import { checkInteger, invalidArgument } from "../check.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { Budgets } from "./hill_climbing.ts";

/**
 * Budgets of `AUTOTUNE`. Datasets that functions make, as for `interleave`, are not tuned: in each
 * of them `AUTOTUNE` means 4 calls in flight, or `cpuBudget` if it is less, and a buffer of 16
 * elements.
 */
export interface AutotuneOptions {
  /**
   * How many user functions may run at once, on all threads together; with 1 all run on the thread
   * of the pipeline. It also limits how many calls are in flight, over all tuned operators; each of
   * them has at least one. Default: a thread for each core, and 16 calls in flight, because most
   * wait.
   */
  readonly cpuBudget?: number | undefined;
  /**
   * How many bytes the buffers of operators with `AUTOTUNE` may hold together, also in datasets that
   * functions make. Each buffer may hold one element. Default 64 MiB.
   */
  readonly ramBudgetBytes?: number | undefined;
}

const CPU_DEFAULT = 16;
const RAM_BYTES_DEFAULT = 64 * 2 ** 20;

/** @throws {LeatError} `invalid_argument` for anything but a boolean or valid budgets. */
export function checkAutotune(value: unknown): boolean | AutotuneOptions | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  const names = ["cpuBudget", "ramBudgetBytes"];
  if (!isPlainObject(value) || Object.keys(value).some((name) => !names.includes(name))) {
    const valid = "a boolean or { cpuBudget, ramBudgetBytes }";
    throw invalidArgument("withOptions", "autotune", valid, value);
  }
  const { cpuBudget, ramBudgetBytes } = value;
  return {
    ...(cpuBudget === undefined
      ? {}
      : { cpuBudget: checkInteger("withOptions", "autotune.cpuBudget", cpuBudget, 1) }),
    ...(ramBudgetBytes === undefined ? {} : {
      ramBudgetBytes: checkInteger("withOptions", "autotune.ramBudgetBytes", ramBudgetBytes, 1),
    }),
  };
}

export function budgetsOf(option: boolean | AutotuneOptions | undefined): Budgets {
  const { cpuBudget = CPU_DEFAULT, ramBudgetBytes = RAM_BYTES_DEFAULT } = typeof option === "object"
    ? option
    : {};
  return { cpu: cpuBudget, ramBytes: ramBudgetBytes };
}

/** How many user functions may run at once, if the option says so. */
export function coresOf(option: boolean | AutotuneOptions | undefined): number | undefined {
  return typeof option === "object" ? option.cpuBudget : undefined;
}
