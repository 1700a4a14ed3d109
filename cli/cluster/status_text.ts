/** A dispatcher's state, as tables for a terminal. */
import { shownText } from "../../core/shown_text.ts";
import type { DispatcherDescription } from "../../mod.ts";
import { measured } from "../lib/quantity.ts";
import { type Cell, renderTable } from "../lib/table.ts";
import { statusLine } from "./status.ts";

type Job = DispatcherDescription["jobs"][number];
type Iteration = Job["iterations"][number];

const MEGABYTE = 1e6;

/**
 * The tables: first a sentence for each wait and its cause, then jobs, clients, sharing windows and
 * workers.
 *
 * @example
 * ```ts
 * import { statusText } from "./status_text.ts";
 *
 * const scaling = { workers: 0, wanted: 0, minWorkers: 0, maxWorkers: 8, text: "", jobs: [] };
 * console.log(statusText({ clusterId: "c", scaling, workers: [], jobs: [] })); // no workers yet, no jobs
 * ```
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
    state.scaling.text,
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
      { heading: "splits handed out" },
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
      { heading: "waits", unit: "%" },
      { heading: "elements/s" },
      { heading: "MB/s" },
      { heading: "decodes", unit: "%" },
      { heading: "unpacks", unit: "%" },
      { heading: "needs ms per element" },
      { heading: "requests in flight" },
      { heading: "buffered MB", digits: 1 },
    ],
    rows: active.flatMap(({ job, iteration }) =>
      iteration.readers.map(({ clientId, consumerIndex, place, figures }): Cell[] => [
        consumerIndex === null ? `${clientId}` : `consumer ${consumerIndex}`,
        job.name,
        place?.round,
        figures === null ? undefined : percentOf(figures.waitingShare),
        figure(figures?.elementsPerSecond),
        figure(figures && figures.bytesPerSecond / MEGABYTE),
        figures === null ? undefined : percentOf(figures.decodingShare),
        figures === null ? undefined : percentOf(figures.unpackingShare),
        figure(figures?.targetProcessingMs),
        figures?.inFlight,
        figures === null ? undefined : figures.bufferedBytes / MEGABYTE,
      ])
    ),
  });
}

/** The decisions about compression, where there was one. */
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
      if (window === null) return [];
      return [[
        worker,
        job.name,
        window.hitRate === null ? undefined : percentOf(window.hitRate),
        window.trainers,
        window.windowBytes / MEGABYTE,
        window.windowBytesMax / MEGABYTE,
        window.produced,
        window.served,
        window.skipped,
      ]];
    })
  );
  if (rows.length === 0) return [];
  return [renderTable({
    title: "\nSharing windows",
    columns: [
      { heading: "worker" },
      { heading: "job" },
      { heading: "hits", unit: "%" },
      { heading: "trainers" },
      { heading: "size MB", digits: 1 },
      { heading: "at most MB", digits: 1 },
      { heading: "produced" },
      { heading: "given to trainers" },
      { heading: "missed" },
    ],
    rows,
  })];
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
      { heading: "busy", unit: "%" },
      { heading: "elements/s" },
      { heading: "MB/s" },
      { heading: "CPU cores" },
      { heading: "memory MB" },
    ],
    rows: workers.map(({ name, ref, tags, isPrivate, activity, tasks, figures }): Cell[] => {
      // The usage of a shared process belongs to no single worker.
      const process = figures?.process?.shared === false ? figures.process : null;
      return [
        name,
        isPrivate === true ? "(its own process alone)" : ref.node,
        tags.join(" "),
        activity.state,
        tasks,
        figures === null ? undefined : percentOf(figures.busyShare),
        figure(figures?.elementsPerSecond),
        figure(figures && figures.bytesPerSecond / MEGABYTE),
        figure(process?.cpuCores),
        figure(process && process.memoryBytes / MEGABYTE),
      ];
    }),
  });
}

function runawayLine({ name, figures }: DispatcherDescription["workers"][number]): string[] {
  const { runawayThreads = 0 } = figures?.process ?? {};
  return runawayThreads === 0 ? [] : [
    `${name}: ${runawayThreads} of its threads cannot be ended, and may keep a core each; restart it`,
  ];
}

function progressOf({ splits, finished }: Iteration): string {
  if (finished) return "finished";
  if (splits.length === 0) return "–";
  return splits.map(({ handedOut, total }) => `${handedOut} of ${total}`).join(", ");
}

function percentOf(share: number): number {
  return Math.round(100 * share);
}

/** Three significant digits, for any magnitude. */
function figure(value: number | null | undefined): Cell {
  return value === null || value === undefined ? undefined : measured(value, "1");
}
