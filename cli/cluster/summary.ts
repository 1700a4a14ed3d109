/** The final output of `deno task cluster`: a table of processes, and whether the guarantee was kept. */
import { type Cell, renderTable } from "../lib/table.ts";
import type { ChildProcess } from "./child_process.ts";
import type { Ledger } from "./ledger.ts";
import type { WorkerFigures } from "./observer.ts";

/** How the job ended. */
export interface Outcome {
  readonly seconds: number;
  readonly elements: number;
  /** How often each element must arrive if nothing fails. */
  readonly times: number;
  readonly interrupted: boolean;
}

interface Processes {
  readonly dispatcher: ChildProcess;
  readonly workers: readonly ChildProcess[];
}

/** Renders a table with a row for each process. */
export function summaryOf(
  { seconds }: Outcome,
  { dispatcher, workers }: Processes,
  { received }: Ledger,
  { workers: figures }: { readonly workers: ReadonlyMap<string, WorkerFigures> },
): string {
  const rate = Math.round(received / seconds).toLocaleString("en");
  return renderTable({
    title: `${received.toLocaleString("en")} elements in ${
      seconds.toFixed(2)
    } s: ${rate} elements/s`,
    columns: [
      { heading: "process" },
      { heading: "pid" },
      { heading: "address" },
      { heading: "state" },
      { heading: "batches served" },
    ],
    rows: [dispatcher, ...workers].map((child): Cell[] => [
      child.name,
      `${child.pid}`,
      child.address,
      child.end === undefined ? "alive" : `ended: ${child.end}`,
      figures.get(child.name)?.served,
    ]),
  });
}

/** Says whether each element came as often as guaranteed, or at most that often if a worker was lost. */
export function verdictOf(
  { elements, times, interrupted }: Outcome,
  { workers }: Processes,
  ledger: Ledger,
): { readonly text: string; readonly kept: boolean } {
  const { missing, surplus } = ledger.against(times);
  const isUndisturbed = !interrupted && workers.every((worker) => worker.end === undefined);
  const often = times === 1 ? "once" : `${times} times`;
  const guarantee = isUndisturbed ? `exactly ${often}` : `at most ${often}`;
  const kept = surplus === 0 && ledger.wrong === 0 && (!isUndisturbed || missing === 0);
  const counts = [
    `${(elements - missing - surplus).toLocaleString("en")} came ${often}`,
    `${missing.toLocaleString("en")} less often`,
    `${surplus.toLocaleString("en")} more often`,
    `${ledger.wrong.toLocaleString("en")} with a wrong value`,
  ];
  return {
    text: `Each element ${guarantee}: ${kept ? "kept" : "BROKEN"} (of ${
      elements.toLocaleString("en")
    }, ${counts.join(", ")})`,
    kept,
  };
}
