/** The results of a campaign so far: counts by workload, faults by name, and the first failures. */
import { renderTable, type Table } from "../../cli/lib/table.ts";
import { Counters } from "../engine/counters.ts";
import type { SeedOutcome } from "./seed_run.ts";

/** Maximum number of failed seeds kept. The others are only counted. */
const FAILED_KEPT_MAX = 100;

interface Row {
  runs: number;
  events: number;
  cpuMs: number;
  failed: number;
}

/** Collects the results of a campaign. */
export class Tally {
  /** The noun for one run. */
  readonly noun: string;
  readonly counters = new Counters();
  readonly total: Row = emptyRow();
  /** The first failed seeds. */
  readonly failed: SeedOutcome[] = [];
  readonly #rows = new Map<string, Row>();

  constructor(noun: string = "seed") {
    this.noun = noun;
  }

  add(outcome: SeedOutcome): void {
    const { run: { workload }, events, cpuMs, counts, violations } = outcome;
    const row = this.#rows.getOrInsertComputed(workload, emptyRow);
    const isFailed = violations.length > 0;
    for (const each of [row, this.total]) {
      each.runs++;
      each.events += events;
      each.cpuMs += cpuMs;
      if (isFailed) each.failed++;
    }
    for (const [name, times] of counts) this.counters.tally(name, times);
    if (isFailed && this.failed.length < FAILED_KEPT_MAX) this.failed.push(outcome);
  }

  /** Events per ms of core time. */
  get eventsPerMs(): number {
    return rate(this.total);
  }

  /** Returns tables of the workloads and of the counted events. */
  toString(): string {
    return `${renderTable(this.#workloads())}\n\n${renderTable(this.#happened())}`;
  }

  #workloads(): Table {
    const names = [...this.#rows.keys()].sort();
    const rows = names.map((name) => cells(name, this.#rows.get(name)!));
    return {
      title: "Workloads",
      columns: [
        { heading: "workload" },
        { heading: `${this.noun}s` },
        { heading: "events" },
        { heading: `events per ${this.noun}` },
        { heading: "events per ms of a core", digits: 1 },
        { heading: "failed" },
      ],
      rows: names.length > 1 ? [...rows, cells("all", this.total)] : rows,
    };
  }

  #happened(): Table {
    return {
      title: "What happened",
      columns: [{ heading: "what" }, { heading: "times" }],
      rows: this.counters.entries().map(([name, times]) => [name, times]),
    };
  }
}

function emptyRow(): Row {
  return { runs: 0, events: 0, cpuMs: 0, failed: 0 };
}

function cells(name: string, row: Row): (string | number)[] {
  const { runs, events, failed } = row;
  return [name, runs, events, runs === 0 ? 0 : events / runs, rate(row), failed];
}

function rate({ events, cpuMs }: Row): number {
  return cpuMs === 0 ? 0 : events / cpuMs;
}
