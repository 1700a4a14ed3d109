/** Kills, pauses and disconnects processes of a cluster at random, and restarts or resumes them. */
import { setTimeout as sleep } from "node:timers/promises";
import { RandomStream } from "../../core/philox.ts";
import { LeatError } from "../../mod.ts";
import type { Findings } from "../../sim/checkers/checker.ts";
import type { ChildProcess } from "../cluster/child_process.ts";
import type { Deployment } from "../cluster/deployment.ts";
import { CUTS, type Relay } from "./relay.ts";

/** Faults of a process: SIGKILL, SIGSTOP until SIGCONT, or a fault of its connections. */
export const FAULTS = ["kill", "pause", "cut"] as const;
export type Fault = (typeof FAULTS)[number];

/** The kind of process that a fault hits. */
export type Role = "worker" | "dispatcher";

/** On average one in this many cuts affects one connection. The others affect all of a process. */
const SINGLE_CUT_EVERY = 2;

/** The kinds, victims and times of faults. */
interface NemesisOptions {
  readonly seed: number;
  readonly faults: readonly Fault[];
  /** Longest wait before the next fault, in ms. */
  readonly betweenMaxMs: number;
  /** Longest downtime of a killed worker, in ms. */
  readonly downMaxMs: number;
  /** Longest pause of a process, or freeze of its connections, in ms. */
  readonly pauseMaxMs: number;
  /** Longest pause or freeze in a gentle run, in ms. */
  readonly gentleMaxMs: number;
  /** On average one in this many faults hits the dispatcher. 0: none does. */
  readonly dispatcherEvery: number;
  /** How many of the first workers have no faults. Default 0. */
  readonly spared?: number;
  readonly relays: ReadonlyMap<string, Relay>;
  readonly onFault: (what: string) => void;
  /** Records that a killed process cannot be restarted. */
  readonly findings: Findings;
}

/** Injects faults in consecutive runs. Times and victims are drawn from the seed. */
export class Nemesis {
  readonly counts: Record<Fault, Record<Role, number>> = {
    kill: { worker: 0, dispatcher: 0 },
    pause: { worker: 0, dispatcher: 0 },
    cut: { worker: 0, dispatcher: 0 },
  };
  readonly #deployment: Deployment;
  readonly #options: NemesisOptions;
  readonly #rng: RandomStream;
  /** Faults in progress, by the victim's name. */
  readonly #inProgress = new Map<string, Promise<void>>();
  readonly #paused = new Set<ChildProcess>();
  /** How many faults the current run gets, and how many have begun. */
  #planned = 0;
  #begun = 0;
  /** Whether no worker may be killed in the current run. */
  #isGentle = false;
  #hasReaderStepped = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: { readonly faults: number; readonly resolve: () => void }[] = [];

  constructor(deployment: Deployment, options: NemesisOptions) {
    this.#deployment = deployment;
    this.#options = options;
    this.#rng = new RandomStream(BigInt(options.seed), ["chaos"]);
  }

  /** Returns the number of faults so far, of these kinds. */
  total(kinds: readonly Fault[] = FAULTS): number {
    return kinds.reduce(
      (sum, kind) => sum + this.counts[kind].worker + this.counts[kind].dispatcher,
      0,
    );
  }

  /** How many faults are in progress. */
  get active(): number {
    return this.#inProgress.size;
  }

  /** Whether all faults of this run have begun. */
  get isOver(): boolean {
    return this.#begun >= this.#planned;
  }

  /**
   * Plans the faults of a run. They begin with the first step of a reader.
   * @param isGentle Whether to inject only faults that make no worker lose its splits.
   */
  start(faults: number, isGentle: boolean): void {
    [this.#planned, this.#begun, this.#isGentle] = [faults, 0, isGentle];
    this.#hasReaderStepped = false;
  }

  /**
   * Blocks a reader until the faults of this run have progressed as far as the reader, from 0 to 1, so
   * that all faults hit a running job. The first call begins the faults.
   */
  keepUp(share: number): Promise<void> {
    if (!this.#hasReaderStepped) this.#scheduleNext();
    this.#hasReaderStepped = true;
    const faults = Math.min(this.#planned, Math.floor(share * (this.#planned + 1)));
    if (this.#begun >= faults) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ faults, resolve }));
  }

  /** Begins no more faults in this run, and lets readers continue. */
  enough(): void {
    clearTimeout(this.#timer);
    this.#planned = this.#begun;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** Begins no more faults in this run. Resolves when those in progress have ended. */
  async stop(): Promise<void> {
    this.enough();
    await Promise.all(this.#inProgress.values());
  }

  /** Resumes paused processes, which would not notice a request to end. */
  resumeAll(): void {
    for (const child of this.#paused) child.signal("SIGCONT");
  }

  /** Schedules the next fault after a random time. */
  #scheduleNext(): void {
    if (this.isOver) return;
    this.#timer = setTimeout(() => {
      this.#injectFault();
      this.#scheduleNext();
    }, this.#rng.next() * this.#options.betweenMaxMs);
  }

  #injectFault(): void {
    const { dispatcherEvery, faults, spared = 0, onFault, findings } = this.#options;
    const { dispatcher } = this.#deployment;
    const workers = this.#deployment.workers.slice(spared);
    const isDispatcher = dispatcherEvery > 0 && this.#rng.int(dispatcherEvery) === 0;
    const victim = isDispatcher ? dispatcher : workers[this.#rng.int(workers.length)]!;
    const kind = faults[this.#rng.int(faults.length)]!;
    const share = this.#rng.next();
    if (this.#isGentle && kind === "kill" && !isDispatcher) return;
    // Skips a victim that has ended or has a fault in progress. The next attempt draws another.
    if (victim.end !== undefined || this.#inProgress.has(victim.name)) return;
    const [what, end] = this.#begin(kind, victim, isDispatcher, share);
    this.counts[kind][isDispatcher ? "dispatcher" : "worker"]++;
    this.#begun++;
    onFault(what);
    const { name } = victim;
    const over = end.catch((error) => {
      findings.add(`${name} could not be started again: ${LeatError.from(error).message}`);
    }).finally(() => this.#inProgress.delete(name));
    this.#inProgress.set(name, over);
    const isReached = ({ faults }: { faults: number }) => this.#begun >= faults;
    for (const { resolve } of this.#waiting.filter(isReached)) resolve();
    this.#waiting = this.#waiting.filter((one) => !isReached(one));
  }

  /** Begins a fault. Returns its description, and a promise that resolves when the fault has ended. */
  #begin(
    kind: Fault,
    victim: ChildProcess,
    isDispatcher: boolean,
    share: number,
  ): [what: string, end: Promise<void>] {
    const { downMaxMs, pauseMaxMs, gentleMaxMs } = this.#options;
    const { name } = victim;
    const durationMs = Math.ceil(share * (this.#isGentle ? gentleMaxMs : pauseMaxMs));
    if (kind === "kill") {
      const downMs = isDispatcher ? 0 : share * downMaxMs;
      victim.kill();
      return [`kill ${name}, down for ${downMs.toFixed(0)} ms`, this.#restart(victim, downMs)];
    }
    if (kind === "pause") {
      return [`pause ${name} for ${durationMs} ms`, this.#pause(victim, durationMs)];
    }
    const cutKind = CUTS[this.#rng.int(CUTS.length)]!;
    const choose = this.#rng.int(SINGLE_CUT_EVERY) === 0
      ? (connections: number) => this.#rng.int(connections)
      : undefined;
    const count = this.#options.relays.get(name)!.cut(cutKind, choose, durationMs);
    const what = `cut ${name}: ${cutKind} ${count} of its connections`;
    return cutKind === "freeze"
      ? [`${what} for ${durationMs} ms`, sleep(durationMs)]
      : [what, Promise.resolve()];
  }

  async #restart(victim: ChildProcess, downMs: number): Promise<void> {
    await victim.ended;
    await sleep(downMs);
    await this.#deployment.restart(victim);
  }

  async #pause(victim: ChildProcess, durationMs: number): Promise<void> {
    victim.signal("SIGSTOP");
    this.#paused.add(victim);
    await sleep(durationMs);
    victim.signal("SIGCONT");
    this.#paused.delete(victim);
  }
}
