/** What planning needs of the machine. The program's entry installs it once. */
import { LeatError } from "../core/error.ts";
import type { MetricStore } from "./metric_store.ts";

/** Clocks and storage. */
export interface OffloadDependencies {
  /** CPU time of this process so far, in ms. */
  readonly cpuMs: () => number;
  /** The machine's CPUs: a part of the metric store's keys. */
  readonly localResources: () => string;
  /** Opens the metric store in a file. */
  readonly openStore: (path: string) => Promise<MetricStore>;
}

let installed: OffloadDependencies | undefined;

/** Sets what planning uses. */
export function installOffload(dependencies: OffloadDependencies): void {
  installed = dependencies;
}

/** What planning uses. @throws {LeatError} `failed_precondition` if no entry module has installed it. */
export function offloadDependencies(): OffloadDependencies {
  if (installed !== undefined) return installed;
  throw new LeatError(
    "failed_precondition",
    "Nothing here can measure a pipeline: import from mod.ts, which installs the clocks and the store",
  );
}
