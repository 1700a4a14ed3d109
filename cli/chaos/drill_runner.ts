/** Runs drills under faults, and records broken guarantees. */
import { RandomStream } from "../../core/philox.ts";
import { LeatError } from "../../mod.ts";
import type { Violations } from "../../sim/checkers/checker.ts";
import { drillCoordinated } from "./modes/coordinated.ts";
import { drillDeterministic, type ExpectedStream, readUndisturbed } from "./modes/deterministic.ts";
import type { DrillContext, DrillFigures, JobSize, Mode } from "./modes/drill.ts";
import { drillUnordered } from "./modes/unordered.ts";
import { drillSave } from "./modes/save.ts";
import { drillSharing } from "./modes/sharing.ts";
import type { Nemesis } from "./nemesis.ts";
import { openReader } from "./readers.ts";
import type { TestBed } from "./test_bed.ts";

/** Maximum time for a log line about a lost worker to arrive here, and how often to look, in ms. */
const LOG_DELAY_MAX_MS = 10_000;
const LOG_CHECK_MS = 50;
/** How often a run is checked for progress, in ms. */
const STALL_CHECK_MS = 500;

interface RunnerOptions {
  readonly seed: number;
  readonly size: JobSize;
  readonly workers: number;
  /** If a run has neither a fault nor a step for this time, in ms, it counts as hanging. */
  readonly patienceMs: number;
  /** Records broken guarantees. */
  readonly violations: Violations;
  /** Called at each step of a reader. */
  readonly onStep: () => void;
}

/** The result of one run of one mode. */
export interface RunFigures extends DrillFigures {
  readonly mode: Mode;
  readonly seconds: number;
  /** The longest time between two steps, in ms, without the time in which readers were blocked. */
  readonly longestWaitMs: number;
}

export class DrillRunner {
  /** The expected stream of the DETERMINISTIC job, once known. */
  expected: ExpectedStream | undefined;
  /** How many DETERMINISTIC streams were read under faults, and how many had `expected.hash`. */
  readonly streams = { read: 0, same: 0 };
  readonly #testBed: TestBed;
  readonly #nemesis: Nemesis | undefined;
  readonly #options: RunnerOptions;
  #runs = 0;

  /** @param nemesis If omitted, there are no faults. */
  constructor(testBed: TestBed, nemesis: Nemesis | undefined, options: RunnerOptions) {
    this.#testBed = testBed;
    this.#nemesis = nemesis;
    this.#options = options;
  }

  /** Reads the DETERMINISTIC job once without faults. */
  async readUndisturbed(): Promise<ExpectedStream> {
    const run = new Run(this.#testBed, undefined, this.#options, "undisturbed");
    this.expected = await run.guarded(readUndisturbed(run));
    return this.expected;
  }

  /** Runs one drill. Adds broken guarantees to the violations. */
  async run(mode: Mode): Promise<RunFigures> {
    const name = `${mode.toLowerCase()}-${++this.#runs}`;
    const run = new Run(this.#testBed, this.#nemesis, this.#options, name);
    const startedMs = performance.now();
    let figures: DrillFigures = { delivered: 0, remark: "" };
    try {
      figures = await run.guarded(this.#drill(mode, run));
    } catch (error) {
      run.findings("training").add(`${mode} failed: ${LeatError.from(error).message}`);
    }
    const seconds = (performance.now() - startedMs) / 1_000;
    return { ...figures, mode, seconds, longestWaitMs: run.longestWaitMs };
  }

  #drill(mode: Mode, run: Run): Promise<DrillFigures> {
    switch (mode) {
      case "DETERMINISTIC":
        return this.#compare(drillDeterministic(run, this.expected!));
      case "DYNAMIC":
      case "OFF":
        return drillUnordered(run, mode);
      case "sharing":
        return drillSharing(run);
      case "coordinated":
        return drillCoordinated(run);
      case "save":
        return drillSave(run);
    }
  }

  async #compare(
    drill: Promise<DrillFigures & { readonly hash: string }>,
  ): Promise<DrillFigures> {
    const figures = await drill;
    this.streams.read++;
    if (figures.hash === this.expected?.hash) this.streams.same++;
    return figures;
  }
}

/** The environment of a running drill. */
class Run implements DrillContext {
  readonly name: string;
  readonly size: JobSize;
  readonly workers: number;
  readonly folder: string;
  readonly rng: RandomStream;
  longestWaitMs = 0;
  readonly #testBed: TestBed;
  readonly #nemesis: Nemesis | undefined;
  readonly #options: RunnerOptions;
  readonly #lostBefore: number;
  readonly #stoppedBefore: number;
  #lastProgressMs = performance.now();
  #blockedReaders = 0;
  #faultsBefore = 0;

  constructor(
    testBed: TestBed,
    nemesis: Nemesis | undefined,
    options: RunnerOptions,
    name: string,
  ) {
    this.#testBed = testBed;
    this.#nemesis = nemesis;
    this.#options = options;
    this.name = name;
    this.size = options.size;
    this.workers = options.workers;
    this.folder = testBed.folder;
    this.rng = new RandomStream(BigInt(options.seed), ["drill", name]);
    this.#lostBefore = this.#lost;
    this.#stoppedBefore = this.#stopped;
  }

  get areFaultsOver(): boolean {
    return this.#nemesis?.isOver ?? true;
  }

  readonly findings = (checker: string) => this.#options.violations.by(checker);

  readonly openReader: DrillContext["openReader"] = (name, options = {}) => {
    const { deployment, logs } = this.#testBed;
    return openReader(deployment, `${this.name} ${name}`, options, logs.logReader);
  };

  async step(share: number): Promise<void> {
    this.longestWaitMs = Math.max(this.longestWaitMs, performance.now() - this.#lastProgressMs);
    this.#options.onStep();
    this.#blockedReaders++;
    await this.#nemesis?.keepUp(share);
    this.#blockedReaders--;
    this.#lastProgressMs = performance.now();
  }

  async endFaults(): Promise<void> {
    await this.#nemesis?.stop();
  }

  async hasLostWorker(): Promise<boolean> {
    const isLost = () => this.#lost > this.#lostBefore;
    for (let waitedMs = 0; waitedMs < LOG_DELAY_MAX_MS && !isLost(); waitedMs += LOG_CHECK_MS) {
      await new Promise((resolve) => setTimeout(resolve, LOG_CHECK_MS));
    }
    return isLost();
  }

  get hasWorkerLeft(): boolean {
    return this.#stopped > this.#stoppedBefore;
  }

  /** Waits for a drill. Rejects if the drill makes no progress. */
  async guarded<T>(drill: Promise<T>): Promise<T> {
    const { patienceMs } = this.#options;
    const { promise: stalled, reject } = Promise.withResolvers<never>();
    const timer = setInterval(() => {
      const faults = this.#nemesis?.total() ?? 0;
      const active = this.#nemesis?.active ?? 0;
      if (this.#blockedReaders > 0 || faults > this.#faultsBefore || active > 0) {
        this.#lastProgressMs = performance.now();
        this.#faultsBefore = faults;
      }
      if (performance.now() - this.#lastProgressMs <= patienceMs) return;
      reject(
        new LeatError(
          "deadline_exceeded",
          `nothing came for ${patienceMs / 1_000} s, although no fault was in progress`,
        ),
      );
    }, STALL_CHECK_MS);
    try {
      return await Promise.race([drill, stalled]);
    } finally {
      clearInterval(timer);
      drill.catch(() => {});
    }
  }

  get #lost(): number {
    const { logs, scaling } = this.#testBed;
    const killed = this.#nemesis?.counts.kill.worker ?? 0;
    return logs.timedOut + killed + (scaling?.counts.cutShort ?? 0);
  }

  get #stopped(): number {
    return this.#testBed.scaling?.counts.stopped ?? 0;
  }
}
