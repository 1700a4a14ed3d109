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

/** What a victim is. */
export type Role = "worker" | "dispatcher";

/** On average one in this many cuts affects a single connection. The others cut all of a process. */
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
  /** How many workers, the first ones, have no faults. Default 0. */
  readonly spared?: number;
  readonly relays: ReadonlyMap<string, Relay>;
  readonly onFault: (what: string) => void;
  /** Records that a killed process cannot be restarted. */
  readonly findings: Findings;
}

/** Makes the faults of consecutive runs. Times and victims are drawn from the seed. */
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
  readonly #troubles = new Map<string, Promise<void>>();
  readonly #paused = new Set<ChildProcess>();
  /** The current run: how many faults it gets and has had, and whether no worker may be killed. */
  #wanted = 0;
  #done = 0;
  #isGentle = false;
  #hasBegun = false;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: { readonly faults: number; readonly resolve: () => void }[] = [];

  constructor(deployment: Deployment, options: NemesisOptions) {
    this.#deployment = deployment;
    this.#options = options;
    this.#rng = new RandomStream(BigInt(options.seed), ["chaos"]);
  }

  /** Faults so far, of one kind or all. */
  total(kinds: readonly Fault[] = FAULTS): number {
    return kinds.reduce(
      (sum, kind) => sum + this.counts[kind].worker + this.counts[kind].dispatcher,
      0,
    );
  }

  /** How many processes have a fault now. */
  get down(): number {
    return this.#troubles.size;
  }

  /** Whether all faults of this run have begun. */
  get isOver(): boolean {
    return this.#done >= this.#wanted;
  }

  /**
   * Plans `faults` faults, beginning with the first reader's step.
   * @param isGentle Whether to make only faults by which no worker loses what it has.
   */
  start(faults: number, isGentle: boolean): void {
    [this.#wanted, this.#done, this.#isGentle] = [faults, 0, isGentle];
    this.#hasBegun = false;
  }

  /**
   * Holds a reader back until the faults of this run have progressed as far as the reader, from 0 to
   * 1. So all faults hit a running job. The first call begins the faults.
   */
  keepUp(share: number): Promise<void> {
    if (!this.#hasBegun) this.#plan();
    this.#hasBegun = true;
    const faults = Math.min(this.#wanted, Math.floor(share * (this.#wanted + 1)));
    if (this.#done >= faults) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ faults, resolve }));
  }

  /** Begins no more faults in this run, and lets readers continue. */
  enough(): void {
    clearTimeout(this.#timer);
    this.#wanted = this.#done;
    for (const { resolve } of this.#waiting.splice(0)) resolve();
  }

  /** Begins no more faults in this run; resolves when those in progress have ended. */
  async stop(): Promise<void> {
    this.enough();
    await Promise.all(this.#troubles.values());
  }

  /** Resumes paused processes, which would not notice the request to end. */
  resumeAll(): void {
    for (const child of this.#paused) child.signal("SIGCONT");
  }

  #plan(): void {
    if (this.isOver) return;
    this.#timer = setTimeout(() => {
      this.#strike();
      this.#plan();
    }, this.#rng.next() * this.#options.betweenMaxMs);
  }

  #strike(): void {
    const { dispatcherEvery, faults, spared = 0, onFault, findings } = this.#options;
    const { dispatcher } = this.#deployment;
    const workers = this.#deployment.workers.slice(spared);
    const isDispatcher = dispatcherEvery > 0 && this.#rng.int(dispatcherEvery) === 0;
    const victim = isDispatcher ? dispatcher : workers[this.#rng.int(workers.length)]!;
    const kind = faults[this.#rng.int(faults.length)]!;
    const share = this.#rng.next();
    if (this.#isGentle && kind === "kill" && !isDispatcher) return;
    // An earlier fault of this victim is in progress. The next strike draws another victim.
    if (victim.end !== undefined || this.#troubles.has(victim.name)) return;
    const [what, trouble] = this.#begin(kind, victim, isDispatcher, share);
    this.counts[kind][isDispatcher ? "dispatcher" : "worker"]++;
    this.#done++;
    onFault(what);
    const { name } = victim;
    const over = trouble.catch((error) => {
      findings.add(`${name} could not be started again: ${LeatError.from(error).message}`);
    }).finally(() => this.#troubles.delete(name));
    this.#troubles.set(name, over);
    const isReached = ({ faults }: { faults: number }) => this.#done >= faults;
    for (const { resolve } of this.#waiting.filter(isReached)) resolve();
    this.#waiting = this.#waiting.filter((one) => !isReached(one));
  }

  /** Begins a fault. Returns its description, and a promise of its end. */
  #begin(
    kind: Fault,
    victim: ChildProcess,
    isDispatcher: boolean,
    share: number,
  ): [what: string, end: Promise<void>] {
    const { downMaxMs, pauseMaxMs, gentleMaxMs } = this.#options;
    const { name } = victim;
    const lastsMs = Math.ceil(share * (this.#isGentle ? gentleMaxMs : pauseMaxMs));
    if (kind === "kill") {
      const downMs = isDispatcher ? 0 : share * downMaxMs;
      victim.kill();
      return [`kill ${name}, down for ${downMs.toFixed(0)} ms`, this.#restart(victim, downMs)];
    }
    if (kind === "pause") return [`pause ${name} for ${lastsMs} ms`, this.#pause(victim, lastsMs)];
    const how = CUTS[this.#rng.int(CUTS.length)]!;
    const choose = this.#rng.int(SINGLE_CUT_EVERY) === 0
      ? (count: number) => this.#rng.int(count)
      : undefined;
    const cut = this.#options.relays.get(name)!.cut(how, choose, lastsMs);
    const what = `cut ${name}: ${how} ${cut} of its connections`;
    return how === "freeze"
      ? [`${what} for ${lastsMs} ms`, sleep(lastsMs)]
      : [what, Promise.resolve()];
  }

  async #restart(victim: ChildProcess, downMs: number): Promise<void> {
    await victim.ended;
    await sleep(downMs);
    await this.#deployment.restart(victim);
  }

  async #pause(victim: ChildProcess, lastsMs: number): Promise<void> {
    victim.signal("SIGSTOP");
    this.#paused.add(victim);
    await sleep(lastsMs);
    victim.signal("SIGCONT");
    this.#paused.delete(victim);
  }
}
