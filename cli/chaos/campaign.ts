/**
 * A campaign: runs of every mode, one after the other, under faults, until the time or the number of
 * kills is reached, or a guarantee is broken.
 */
import { Violations } from "../../sim/checkers/checker.ts";
import { WORKER_TIMEOUT_MS } from "../cluster/deployment.ts";
import { WINDOW } from "./modes/deterministic.ts";
import type { JobSize, Mode } from "./modes/drill.ts";
import { type Fault, Nemesis } from "./nemesis.ts";
import { Play, type RunFigures } from "./play.ts";
import { brokenPromises, outcomeTable } from "./report.ts";
import { ChaosScaling } from "./scaling.ts";
import type { Stage } from "./stage.ts";
import { counted } from "../lib/counted.ts";
import type { StatusLine } from "../lib/status_line.ts";
import { Watch } from "./watch.ts";

/** In a gentle run, in which no worker is lost, faults last at most this share of the worker timeout. */
const GENTLE_SHARE = 0.25;
/** Time limit for all workers to be back before a run, in ms. It is long, for busy machines. */
const WORKERS_BACK_MAX_MS = 180_000;
/** Modes with stronger guarantees if no worker is lost: every second run of them is gentle. */
const EXACT_MODES: readonly Mode[] = ["DYNAMIC", "OFF"];

/** Options of `deno task chaos`. */
interface CampaignOptions extends JobSize {
  /** No run begins after this time, except the first of each mode. */
  readonly minutes: number;
  /** If given, ends after this many kills. */
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
  readonly #stage: Stage;
  readonly #status: StatusLine;
  readonly #startedMs = performance.now();
  readonly #violations = new Violations();
  readonly #runs = new Map<Mode, number>();
  /** How many runs were completed. */
  #judged = 0;
  #isInterrupted = false;
  #longestWaitMs = 0;
  #shown = "";

  constructor(values: CampaignOptions, stage: Stage, status: StatusLine) {
    this.#values = values;
    this.#stage = stage;
    this.#status = status;
  }

  /** Runs the campaign, and prints its table. */
  async toTheEnd(): Promise<"kept" | "broken"> {
    const { workers, modes } = this.#values;
    await this.#stage.deployment.start(workers);
    using watch = new Watch(this.#stage.deployment);
    const nemesis = this.#makeNemesis();
    this.#nemesis = nemesis;
    const play = this.#makePlay(nemesis);
    if (modes.includes("DETERMINISTIC")) {
      const { batches, hash } = await play.readUndisturbed();
      this.#say(`undisturbed: ${batches.length} batches, hash ${hash}`);
    }
    const scaling = this.#startScaling();
    for (let i = 0; this.#violations.count === 0 && !this.#isEnough(i); i++) {
      await this.#run(modes[i % modes.length]!, play, nemesis, watch);
    }
    // Not awaited: the scaler's draining workers end with the others.
    void scaling?.close();
    // No table after an interruption: it would show the errors of the interruption itself.
    if (this.#isInterrupted) return "kept";
    const outcome = {
      faults: nemesis.counts,
      hash: play.wanted?.hash,
      streams: play.streams,
      runs: this.#runs,
      givenUp: this.#stage.logs.givenUp,
      served: watch.served,
      scaled: scaling?.counts,
      warnings: this.#stage.logs.warnings,
      held: { most: watch.bufferedBytesMax, limit: WINDOW.bytesWith(scaling?.most ?? workers) },
      open: { most: watch.openSplitsMax, limit: WINDOW.splits },
      longestWaitMs: this.#longestWaitMs,
      seconds: this.#seconds,
      violations: this.#violations.list(),
    };
    console.log(outcomeTable(outcome));
    return brokenPromises(outcome).length > 0 ? "broken" : "kept";
  }

  /** Resumes paused processes, which would not notice the request to end. Starts no more workers. */
  letGo(): void {
    this.#nemesis?.resumeAll();
    void this.#stage.scaling?.close();
  }

  /** Stops checking, and resumes paused processes. Returns a sentence about what was done so far. */
  interrupt(): string {
    this.#isInterrupted = true;
    this.#nemesis?.enough();
    this.letGo();
    const { count } = this.#violations;
    return `Interrupted after ${
      this.#seconds.toFixed(0)
    } s: ${this.#judged} runs were judged, with ` +
      `${counted(this.#nemesis?.total() ?? 0, "fault")} so far, and ${
        count === 0 ? "no promise was broken" : `promises were broken ${counted(count, "time")}`
      }; what was under way is not judged, and there is no table`;
  }

  get #seconds(): number {
    return (performance.now() - this.#startedMs) / 1_000;
  }

  /** Each mode has at least one run, however short the time. */
  #isEnough(runs: number): boolean {
    const { minutes, modes } = this.#values;
    return this.#killsLeft <= 0 || runs >= modes.length && this.#seconds / 60 >= minutes;
  }

  get #killsLeft(): number {
    return (this.#values.kills ?? Infinity) - (this.#nemesis?.total(["kill"]) ?? 0);
  }

  async #run(mode: Mode, play: Play, nemesis: Nemesis, watch: Watch): Promise<void> {
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
    this.#shown = `${mode} run ${number}`;
    nemesis.start(Math.min(faultsPerRun, this.#killsLeft), isGentle);
    const figures = await play.run(mode);
    if (this.#violations.count === 0) await nemesis.stop();
    else nemesis.enough();
    this.#judged++;
    this.#longestWaitMs = Math.max(this.#longestWaitMs, figures.longestWaitMs);
    this.#say(`${this.#shown}: ${counted(nemesis.total() - before, "fault")}, ${textOf(figures)}`);
  }

  /** Whether there are faults by which no worker loses anything. */
  get #canBeGentle(): boolean {
    const { faults, dispatcherEvery } = this.#values;
    return faults.some((fault: Fault) => fault !== "kill") || dispatcherEvery > 0;
  }

  #startScaling(): ChaosScaling | undefined {
    const { seed, workers, maxWorkers } = this.#values;
    if (maxWorkers === undefined) return undefined;
    const { deployment, logs } = this.#stage;
    return this.#stage.scaling = new ChaosScaling(deployment, logs, {
      ...{ seed, minWorkers: workers, maxWorkers },
      onStep: (what) => this.#note(`${this.#shown}: ${what}`),
    });
  }

  #makeNemesis(): Nemesis {
    const { seed, faults, betweenMs, downMs, pauseMs, dispatcherEvery } = this.#values;
    return new Nemesis(this.#stage.deployment, {
      ...{ seed, faults, dispatcherEvery, relays: this.#stage.relays },
      ...{ betweenMaxMs: betweenMs, downMaxMs: downMs, pauseMaxMs: pauseMs },
      gentleMaxMs: Math.min(pauseMs, GENTLE_SHARE * WORKER_TIMEOUT_MS),
      onFault: (what) => this.#note(`${this.#shown}: ${what}`),
      findings: this.#violations.by("processes"),
    });
  }

  #makePlay(nemesis: Nemesis): Play {
    const { seed, elements, work, workers, patienceS } = this.#values;
    let steps = 0;
    return new Play(this.#stage, nemesis, {
      ...{ seed, workers, size: { elements, work }, patienceMs: patienceS * 1_000 },
      violations: this.#violations,
      onStep: () =>
        this.#status.show(
          `${this.#shown}: step ${++steps}, ${
            counted(nemesis.total(), "fault")
          }, ${nemesis.down} in trouble now`,
        ),
    });
  }

  #note(what: string): void {
    this.#stage.logs.write("faults", what);
    this.#status.note(what);
  }

  #say(what: string): void {
    this.#stage.logs.write("faults", what);
    console.log(what);
  }
}

function textOf({ delivered, seconds, longestWaitMs, remark }: RunFigures): string {
  return `${delivered} delivered in ${seconds.toFixed(1)} s, longest wait ` +
    `${(longestWaitMs / 1_000).toFixed(1)} s; ${remark}`;
}
