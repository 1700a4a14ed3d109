/** A dispatcher's state, as tables for a terminal. */
import { shownText } from "../../core/shown_text.ts";
import type { DispatcherDescription } from "../../mod.ts";
import type { MetricUnit } from "../../actors/dispatcher/metric.ts";
import type { Described, MetricGroup } from "../../actors/dispatcher/protocol_metrics.ts";
import { columnsOf } from "../../server/pages/columns.ts";
import { measured, type Unit } from "../lib/quantity.ts";
import { type Cell, type Column, renderTable } from "../lib/table.ts";
import { statusLine } from "./status.ts";

type Job = DispatcherDescription["jobs"][number];
type Iteration = Job["iterations"][number];

/**
 * Renders the state: first a sentence for each wait and its cause, then tables of jobs, clients,
 * sharing windows and workers.
 */
export function statusText(description: DispatcherDescription): string {
  const state = withShownTexts(description);
  const { jobs, workers } = state;
  const active = jobs.flatMap((job) =>
    job.iterations.filter(({ clients }) => clients > 0).map((iteration) => ({ job, iteration }))
  );
  const failed = jobs.flatMap((job) =>
    job.iterations.filter(({ clients, failure }) => clients === 0 && failure !== undefined)
      .map((iteration) => ({ job, iteration }))
  );
  const parts = [
    statusLine(state),
    ...(state.journal === undefined ? [] : [`The dispatcher waits: ${state.journal.waits}`]),
    ...failed.map(({ job, iteration }) => `${job.name}: ${iteration.bottleneck.text}`),
    ...active.map(({ job, iteration }) => `${job.name}: ${iteration.bottleneck.text}`),
    ...active.flatMap(({ job, iteration: { rounds } }) =>
      rounds === undefined ? [] : [`${job.name}, in rounds: ${rounds.text}`]
    ),
    state.scaling.text + stepsHint(state, active),
    ...(jobs.length === 0 ? [] : [jobTable(jobs)]),
    ...(active.length === 0 ? [] : [clientTable(active)]),
    ...sharingTables(active),
    ...compressionLines(active),
    ...(workers.length === 0 ? [] : [workerTable(state)]),
    ...workers.flatMap(({ name, activity }) =>
      activity.reason === null ? [] : [`${name} (${activity.state}): ${activity.reason}`]
    ),
    ...workers.flatMap(runawayLine),
  ];
  return parts.join("\n");
}

/** Explains why fewer workers are wanted than a wait says would do: that is by the newest figures. */
function stepsHint(
  { scaling: { wanted, maxWorkers, jobs } }: DispatcherDescription,
  active: readonly { readonly iteration: Iteration }[],
): string {
  const isMore = ({ iteration: { bottleneck, optimalWorkers } }: typeof active[number]) =>
    bottleneck.kind === "trainers_wait" && Math.ceil(optimalWorkers ?? 0) > wanted;
  const [decisive] = jobs.toSorted((a, b) => b.wanted - a.wanted);
  // Then its text has just said that more workers do not help.
  if (decisive?.kind === "limited") return "";
  if (wanted >= maxWorkers || !active.some(isMore)) return "";
  return " More would do by the newest figures alone; the number follows in steps, each measured.";
}

/** Names and errors are untrusted: they must not contain terminal escapes. */
function withShownTexts(state: DispatcherDescription): DispatcherDescription {
  const text = JSON.stringify(state);
  return JSON.parse(text, (_, value) => typeof value === "string" ? shownText(value) : value);
}

function jobTable(jobs: readonly Job[]): string {
  return renderTable({
    title: "\nJobs",
    columns: [
      { heading: "job" },
      { heading: "mode" },
      { heading: "repetition" },
      { heading: "splits assigned" },
      { heading: "workers it could use" },
      { heading: "CPU h" },
      { heading: "GB h" },
      { heading: "workers USD" },
    ],
    rows: jobs.flatMap(({ name, parameters, iterations, usage }) =>
      iterations.map((iteration): Cell[] => [
        name,
        parameters.processingMode + (parameters.sharing ? ", shared" : ""),
        iteration.repetition,
        progressOf(iteration),
        figure(iteration.optimalWorkers),
        figure(usage.workerCpuHours),
        figure(usage.workerMemoryGBHours),
        figure(usage.workersDollars),
      ])
    ),
  });
}

function clientTable(active: readonly { readonly job: Job; readonly iteration: Iteration }[]) {
  return renderTable({
    title: "\nClients",
    columns: [
      { heading: "client" },
      { heading: "job" },
      { heading: "round" },
      ...figureColumns("client"),
    ],
    rows: active.flatMap(({ job, iteration }) =>
      iteration.readers.map(({ clientId, consumerIndex, position, figures }): Cell[] => [
        consumerIndex === null ? `${clientId}` : `consumer ${consumerIndex}`,
        job.name,
        position?.round,
        ...figureCells("client", figures),
      ])
    ),
  });
}

/** A line for each task that has decided about compression. */
function compressionLines(
  active: readonly { readonly job: Job; readonly iteration: Iteration }[],
): string[] {
  return active.flatMap(({ job, iteration }) =>
    iteration.tasks.flatMap(({ worker, figures }) => {
      const { active = "none", bytes = 0, ms = 0, reason = "" } = figures?.compression ?? {};
      if (active === "none" && bytes === 0 && ms === 0) return [];
      const how = active === "none" ? "does not compress" : `compresses with ${active}`;
      return [`${worker} ${how} for ${job.name}: ${reason}`];
    })
  );
}

function sharingTables(
  active: readonly { readonly job: Job; readonly iteration: Iteration }[],
): string[] {
  const rows = active.flatMap(({ job, iteration }) =>
    iteration.tasks.flatMap(({ worker, figures }): Cell[][] => {
      const window = figures?.sharing ?? null;
      return window === null ? [] : [[worker, job.name, ...figureCells("sharing", window)]];
    })
  );
  if (rows.length === 0) return [];
  const columns = [{ heading: "worker" }, { heading: "job" }, ...figureColumns("sharing")];
  return [renderTable({ title: "\nSharing windows", columns, rows })];
}

function workerTable({ workers }: DispatcherDescription): string {
  return renderTable({
    title: "\nWorkers",
    columns: [
      { heading: "worker" },
      { heading: "address" },
      { heading: "tags" },
      { heading: "state" },
      { heading: "tasks" },
      ...figureColumns("task"),
      ...figureColumns("process"),
    ],
    rows: workers.map(({ name, ref, tags, isPrivate, activity, tasks, figures }): Cell[] => {
      // If several workers share a process, its usage is no single worker's.
      const process = figures?.process?.shared === false ? figures.process : null;
      return [
        name,
        isPrivate === true ? "(only its own process)" : ref.node,
        tags.join(" "),
        activity.state,
        tasks,
        ...figureCells("task", figures),
        ...figureCells("process", process),
      ];
    }),
  });
}

function runawayLine({ name, figures }: DispatcherDescription["workers"][number]): string[] {
  const runawayThreads = figures?.process?.runawayThreads ?? 0;
  return runawayThreads === 0 ? [] : [
    `${name}: ${runawayThreads} of its threads cannot be ended, and may each keep a core busy; restart the worker`,
  ];
}

function progressOf({ splits, finished }: Iteration): string {
  if (finished) return "finished";
  if (splits.length === 0) return "–";
  return splits.map(({ handedOut, total }) => `${handedOut} of ${total}`).join(", ");
}

/** How columns show figures of a unit. Figures of other units are shown as counts. */
const SHOWN: { readonly [U in MetricUnit]?: Omit<Column, "heading"> & { readonly of: Unit } } = {
  "share": { of: "1", unit: "%", digits: 0 },
  "bytes": { of: "bytes", unit: "MB" },
  "bytes/s": { of: "bytes", unit: "MB" },
  "ms": { of: "ms", unit: "ms" },
  "cores": { of: "1" },
  "elements/s": { of: "1" },
};

function figureColumns(group: MetricGroup): Column[] {
  return columnsOf(group).map(({ heading, unit }) => {
    const { of: _, ...shown } = SHOWN[unit] ?? { of: "1" };
    return { heading, ...shown };
  });
}

function figureCells<G extends MetricGroup>(group: G, figures: Described<G> | null): Cell[] {
  return columnsOf(group).map(({ key, unit }) => {
    const value = (figures as Readonly<Record<string, number | null>> | null)?.[key] ?? undefined;
    const shown = SHOWN[unit];
    return value === undefined || shown === undefined ? value : measured(value, shown.of);
  });
}

/** Three significant digits, for any magnitude. */
function figure(value: number | null | undefined): Cell {
  return value === null || value === undefined ? undefined : measured(value, "1");
}
