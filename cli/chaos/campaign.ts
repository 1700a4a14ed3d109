/**
 * A campaign runs jobs of every mode, one after the other, under faults. It ends when the time is over,
 * the number of kills is reached, or a guarantee is broken.
 */
import { Violations } from "../../sim/checkers/checker.ts";
import { WORKER_TIMEOUT_MS } from "../cluster/deployment.ts";
import { WINDOW } from "./modes/deterministic.ts";
import type { JobSize, Mode } from "./modes/drill.ts";
import { type Fault, Nemesis } from "./nemesis.ts";
import { DrillRunner, type RunFigures } from "./drill_runner.ts";
import { brokenPromises, outcomeTable } from "./report.ts";
import { ChaosScaling } from "./scaling.ts";
import type { TestBed } from "./test_bed.ts";
import { counted } from "../lib/counted.ts";
import type { StatusLine } from "../lib/status_line.ts";
import { Watch } from "./watch.ts";

/** In a gentle run, in which no worker is lost, faults last at most this share of the worker timeout. */
const GENTLE_SHARE = 0.25;
/** Time limit for all workers to be live before a run, in ms. It is long, for busy machines. */
const WORKERS_BACK_MAX_MS = 180_000;
/** Modes whose guarantees are stronger if no worker is lost. Every second run of them is gentle. */
const EXACT_MODES: readonly Mode[] = ["DYNAMIC", "OFF"];

/** Options of `deno task chaos`. */
interface CampaignOptions extends JobSize {
  /** No run begins after this many minutes, except the first run of each mode. */
  readonly minutes: number;
  /** If given, the campaign ends after this many kills. */
  readonly kills: number | undefined;
  readonly faults: readonly Fault[];
  readonly modes: readonly Mode[];
  readonly seed: number;
  readonly faultsPerRun: number;
  readonly workers: number;
  /** If given, a scaler starts up to this many workers, and drains them again. */
  readonly maxWorkers: number | undefined;
  readonly dispatcherEvery: number;
  readonly betweenMs: number;
  readonly downMs: number;
  readonly pauseMs: number;
  readonly patienceS: number;
}

export class Campaign {
  #nemesis: Nemesis | undefined;
  readonly #values: CampaignOptions;
  readonly #testBed: TestBed;
  readonly #status: StatusLine;
  readonly #startedMs = performance.now();
  readonly #violations = new Violations();
  readonly #runs = new Map<Mode, number>();
  /** How many runs were completed and checked. */
  #completed = 0;
  #isInterrupted = false;
  #longestWaitMs = 0;
  #runName = "";

  constructor(values: CampaignOptions, testBed: TestBed, status: StatusLine) {
    this.#values = values;
    this.#testBed = testBed;
    this.#status = status;
  }

  /** Runs the campaign, and prints its table. Returns whether all guarantees were kept. */
  async run(): Promise<"kept" | "broken"> {
    const { workers, modes } = this.#values;
    await this.#testBed.deployment.start(workers);
    using watch = new Watch(this.#testBed.deployment);
    const nemesis = this.#makeNemesis();
    this.#nemesis = nemesis;
    const runner = this.#makeRunner(nemesis);
    if (modes.includes("DETERMINISTIC")) {
      const { batches, hash } = await runner.readUndisturbed();
      this.#print(`undisturbed: ${batches.length} batches, hash ${hash}`);
    }
    const scaling = this.#startScaling();
    for (let i = 0; this.#violations.count === 0 && !this.#isEnough(i); i++) {
      await this.#runMode(modes[i % modes.length]!, runner, nemesis, watch);
    }
    // Not awaited, because the scaler's draining workers end with the others.
    void scaling?.close();
    // No table after an interruption, because it would show the errors of the interruption itself.
    if (this.#isInterrupted) return "kept";
    const outcome = {
      faults: nemesis.counts,
      hash: runner.expected?.hash,
      streams: runner.streams,
      runs: this.#runs,
      timedOut: this.#testBed.logs.timedOut,
      served: watch.served,
      scaled: scaling?.counts,
      warnings: this.#testBed.logs.warnings,
      held: { most: watch.bufferedBytesMax, limit: WINDOW.bytesWith(scaling?.most ?? workers) },
      open: { most: watch.openSplitsMax, limit: WINDOW.splits },
      longestWaitMs: this.#longestWaitMs,
      seconds: this.#seconds,
      violations: this.#violations.list(),
    };
    console.log(outcomeTable(outcome));
    return brokenPromises(outcome).length > 0 ? "broken" : "kept";
  }

  /** Resumes paused processes, which would not notice a request to end. Starts no more workers. */
  prepareToEnd(): void {
    this.#nemesis?.resumeAll();
    void this.#testBed.scaling?.close();
  }

  /** Stops checking, and ends the cluster. Returns a sentence about what was done so far. */
  interrupt(): Promise<string> {
    this.#isInterrupted = true;
    this.#nemesis?.enough();
    this.prepareToEnd();
    const done = `${this.#seconds.toFixed(0)} s: ${this.#completed} runs were judged, with ` +
      `${
        counted(this.#nemesis?.total() ?? 0, "fault")
      }; the unfinished run is not judged, and there ` +
      "is no table";
    return this.#testBed.interrupted(done, this.#violations);
  }

  get #seconds(): number {
    return (performance.now() - this.#startedMs) / 1_000;
  }

  /** Whether to begin no more runs. Each mode gets at least one, unless the kills are reached before. */
  #isEnough(runs: number): boolean {
    const { minutes, modes } = this.#values;
    return this.#killsLeft <= 0 || runs >= modes.length && this.#seconds / 60 >= minutes;
  }

  get #killsLeft(): number {
    return (this.#values.kills ?? Infinity) - (this.#nemesis?.total(["kill"]) ?? 0);
  }

  async #runMode(mode: Mode, runner: DrillRunner, nemesis: Nemesis, watch: Watch): Promise<void> {
    const { faultsPerRun, workers } = this.#values;
    const before = nemesis.total();
    const number = (this.#runs.get(mode) ?? 0) + 1;
    this.#runs.set(mode, number);
    if (!await watch.workersLive(workers, WORKERS_BACK_MAX_MS)) {
      const seconds = WORKERS_BACK_MAX_MS / 1_000;
      this.#violations.by("liveness").add(`not all workers are back after ${seconds} s`);
      return;
    }
    const isGentle = EXACT_MODES.includes(mode) && number % 2 === 1 && this.#canBeGentle;
    this.#runName = `${mode} run ${number}`;
    nemesis.start(Math.min(faultsPerRun, this.#killsLeft), isGentle);
    const figures = await runner.run(mode);
    if (this.#violations.count === 0) await nemesis.stop();
    else nemesis.enough();
    this.#completed++;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, figures.longestWaitMs);
    this.#print(
      `${this.#runName}: ${counted(nemesis.total() - before, "fault")}, ${textOf(figures)}`,
    );
  }

  /** Whether the options allow faults that make no worker lose its splits. */
  get #canBeGentle(): boolean {
    const { faults, dispatcherEvery } = this.#values;
    return faults.some((fault: Fault) => fault !== "kill") || dispatcherEvery > 0;
  }

  #startScaling(): ChaosScaling | undefined {
    const { seed, workers, maxWorkers } = this.#values;
    if (maxWorkers === undefined) return undefined;
    const { deployment, logs } = this.#testBed;
    return this.#testBed.scaling = new ChaosScaling(deployment, logs, {
      ...{ seed, minWorkers: workers, maxWorkers },
      onStep: (what) => this.#note(`${this.#runName}: ${what}`),
    });
  }

  #makeNemesis(): Nemesis {
    const { seed, faults, betweenMs, downMs, pauseMs, dispatcherEvery } = this.#values;
    return new Nemesis(this.#testBed.deployment, {
      ...{ seed, faults, dispatcherEvery, relays: this.#testBed.relays },
      ...{ betweenMaxMs: betweenMs, downMaxMs: downMs, pauseMaxMs: pauseMs },
      gentleMaxMs: Math.min(pauseMs, GENTLE_SHARE * WORKER_TIMEOUT_MS),
      onFault: (what) => this.#note(`${this.#runName}: ${what}`),
      findings: this.#violations.by("processes"),
    });
  }

  #makeRunner(nemesis: Nemesis): DrillRunner {
    const { seed, elements, work, workers, patienceS } = this.#values;
    let steps = 0;
    return new DrillRunner(this.#testBed, nemesis, {
      ...{ seed, workers, size: { elements, work }, patienceMs: patienceS * 1_000 },
      violations: this.#violations,
      onStep: () =>
        this.#status.show(
          `${this.#runName}: step ${++steps}, ${
            counted(nemesis.total(), "fault")
          }, ${nemesis.active} in progress`,
        ),
    });
  }

  #note(what: string): void {
    this.#testBed.logs.write("faults", what);
    this.#status.note(what);
  }

  #print(what: string): void {
    this.#testBed.logs.write("faults", what);
    console.log(what);
  }
}

function textOf({ delivered, seconds, longestWaitMs, remark }: RunFigures): string {
  return `${delivered} delivered in ${seconds.toFixed(1)} s, longest wait ` +
    `${(longestWaitMs / 1_000).toFixed(1)} s; ${remark}`;
}
