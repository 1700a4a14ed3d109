/** Runs drills under faults, and reports broken guarantees. */
import { RandomStream } from "../../core/philox.ts";
import { LeatError } from "../../mod.ts";
import type { Violations } from "../../sim/checkers/checker.ts";
import { drillCoordinated } from "./modes/coordinated.ts";
import { drillDeterministic, type KnownStream, readUndisturbed } from "./modes/deterministic.ts";
import type { DrillContext, DrillFigures, JobSize, Mode } from "./modes/drill.ts";
import { drillUnordered } from "./modes/unordered.ts";
import { drillSave } from "./modes/save.ts";
import { drillSharing } from "./modes/sharing.ts";
import type { Nemesis } from "./nemesis.ts";
import { openReader } from "./readers.ts";
import type { Stage } from "./stage.ts";

/** Time for a process's log line about a lost worker to arrive here, in ms. */
const LOG_DELAY_MS = 500;
/** How often a run is checked for progress, in ms. */
const STALL_CHECK_MS = 500;

interface PlayOptions {
  readonly seed: number;
  readonly size: JobSize;
  readonly workers: number;
  /** A run without a fault and without a step for this time, in ms, counts as hanging. */
  readonly patienceMs: number;
  /** Records broken guarantees. */
  readonly violations: Violations;
  /** Called at each step of a loop. */
  readonly onStep: () => void;
}

/** One run of one mode. */
export interface RunFigures extends DrillFigures {
  readonly mode: Mode;
  readonly seconds: number;
  /** The longest time between two steps, without the time that readers were held back, in ms. */
  readonly longestWaitMs: number;
}

export class Play {
  /** The expected stream of the DETERMINISTIC job, once known. */
  wanted: KnownStream | undefined;
  /** DETERMINISTIC streams that were read completely under faults, and those with `wanted.hash`. */
  readonly streams = { read: 0, same: 0 };
  readonly #stage: Stage;
  readonly #nemesis: Nemesis | undefined;
  readonly #options: PlayOptions;
  #runs = 0;

  /** @param nemesis If omitted, there are no faults. */
  constructor(stage: Stage, nemesis: Nemesis | undefined, options: PlayOptions) {
    this.#stage = stage;
    this.#nemesis = nemesis;
    this.#options = options;
  }

  /** Reads the DETERMINISTIC job once without faults. */
  async readUndisturbed(): Promise<KnownStream> {
    const run = new Run(this.#stage, undefined, this.#options, "undisturbed");
    this.wanted = await run.guarded(readUndisturbed(run));
    return this.wanted;
  }

  /** Makes one run. It adds broken guarantees to the violations. */
  async run(mode: Mode): Promise<RunFigures> {
    const name = `${mode.toLowerCase()}-${++this.#runs}`;
    const run = new Run(this.#stage, this.#nemesis, this.#options, name);
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
        return this.#compare(drillDeterministic(run, this.wanted!));
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
    if (figures.hash === this.wanted?.hash) this.streams.same++;
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
  readonly #stage: Stage;
  readonly #nemesis: Nemesis | undefined;
  readonly #options: PlayOptions;
  readonly #lostBefore: number;
  readonly #leftBefore: number;
  #sinceMs = performance.now();
  #held = 0;
  #faultsBefore = 0;

  constructor(
    stage: Stage,
    nemesis: Nemesis | undefined,
    options: PlayOptions,
    name: string,
  ) {
    this.#stage = stage;
    this.#nemesis = nemesis;
    this.#options = options;
    this.name = name;
    this.size = options.size;
    this.workers = options.workers;
    this.folder = stage.folder;
    this.rng = new RandomStream(BigInt(options.seed), ["drill", name]);
    this.#lostBefore = this.#lost;
    this.#leftBefore = this.#left;
  }

  get areFaultsOver(): boolean {
    return this.#nemesis?.isOver ?? true;
  }

  readonly findings = (checker: string) => this.#options.violations.by(checker);

  readonly openReader: DrillContext["openReader"] = (name, options = {}) => {
    const { deployment, logs } = this.#stage;
    return openReader(deployment, `${this.name} ${name}`, options, logs.heardReader);
  };

  async step(share: number): Promise<void> {
    this.longestWaitMs = Math.max(this.longestWaitMs, performance.now() - this.#sinceMs);
    this.#options.onStep();
    this.#held++;
    await this.#nemesis?.keepUp(share);
    this.#held--;
    this.#sinceMs = performance.now();
  }

  async calm(): Promise<void> {
    await this.#nemesis?.stop();
  }

  async hasLostWorker(): Promise<boolean> {
    await new Promise((resolve) => setTimeout(resolve, LOG_DELAY_MS));
    return this.#lost > this.#lostBefore;
  }

  get hasWorkerLeft(): boolean {
    return this.#left > this.#leftBefore;
  }

  /** The result of a drill, or an error if it makes no progress. */
  async guarded<T>(drill: Promise<T>): Promise<T> {
    const { patienceMs } = this.#options;
    const { promise: stalled, reject } = Promise.withResolvers<never>();
    const timer = setInterval(() => {
      const faults = this.#nemesis?.total() ?? 0;
      if (this.#held > 0 || faults > this.#faultsBefore || (this.#nemesis?.down ?? 0) > 0) {
        this.#sinceMs = performance.now();
        this.#faultsBefore = faults;
      }
      if (performance.now() - this.#sinceMs <= patienceMs) return;
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
    const { logs, scaling } = this.#stage;
    const killed = this.#nemesis?.counts.kill.worker ?? 0;
    return logs.givenUp + killed + (scaling?.counts.cutShort ?? 0);
  }

  get #left(): number {
    return this.#stage.scaling?.counts.stopped ?? 0;
  }
}
