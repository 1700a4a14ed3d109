/**
 * Models a training in virtual time: cores, network and disk are queues. The production counters
 * decide which side prepares each item.
 */
import type { RatioControl } from "../../offload/adapt.ts";
import { Counters } from "../../offload/conditional/counters.ts";
import { readySide, type SideName } from "../../offload/conditional/ready_side.ts";
import type { OffloadChoice } from "../../mod.ts";
import type { Costs } from "./costs.ts";
import type { Environment } from "./environments.ts";
import { BATCH } from "./workloads.ts";

const MS_PER_SECOND = 1_000;
/** How many batches are prepared ahead. */
const READ_AHEAD = 2;
/** Least elements and time of a window for correcting the ratio, as in production. */
const WINDOW_ELEMENTS_MIN = 25;
const WINDOW_MS_MIN = 200;

/** A clock that runs events in virtual time. */
export class VirtualTime {
  nowMs = 0;
  /** CPU time of the host so far, for all models on this clock. */
  hostCpuMs = 0;
  /** The pending events, latest first. */
  readonly #events: { readonly atMs: number; readonly action: () => void }[] = [];

  after(ms: number, action: () => void): void {
    const atMs = this.nowMs + ms;
    let index = this.#events.length;
    while (index > 0 && this.#events[index - 1]!.atMs <= atMs) index--;
    this.#events.splice(index, 0, { atMs, action });
  }

  /** Advances the clock by this time, and runs the events that are due. */
  advance(ms: number): void {
    const untilMs = this.nowMs + ms;
    while ((this.#events.at(-1)?.atMs ?? Infinity) <= untilMs) this.next();
    this.nowMs = untilMs;
  }

  /** Advances the clock to the next event, and runs it. */
  next(): void {
    const { atMs, action } = this.#events.pop()!;
    this.nowMs = atMs;
    action();
  }
}

/** A queue in front of equal servers, such as cores, a network or a disk. */
class Servers {
  readonly #time: VirtualTime;
  #free: number;
  readonly #urgent: (() => void)[] = [];
  readonly #waiting: (() => void)[] = [];

  constructor(time: VirtualTime, count: number) {
    this.#time = time;
    this.#free = count;
  }

  serve(ms: number, done: () => void, isUrgent = false): void {
    const start = () =>
      this.#time.after(ms, () => {
        const next = this.#urgent.shift() ?? this.#waiting.shift();
        if (next === undefined) this.#free++;
        else next();
        done();
      });
    if (this.#free === 0) (isUrgent ? this.#urgent : this.#waiting).push(start);
    else {
      this.#free--;
      start();
    }
  }
}

/** A training in which workers prepare a share of the items: batches with p'3, otherwise elements. */
export class ModelledTraining {
  readonly #time: VirtualTime;
  readonly #costs: Costs;
  readonly #environment: Environment;
  readonly #candidate: string;
  readonly #itemsPerBatch: number;
  readonly #control: RatioControl | undefined;
  #counters: Counters;
  readonly #host: Servers;
  readonly #workers: Servers;
  /** The network in each direction. */
  readonly #linkToWorkers: Servers;
  readonly #linkFromWorkers: Servers;
  readonly #disk: Servers;
  readonly #ready: Record<SideName, number> = { local: 0, remote: 0 };
  readonly #inProgress: Record<SideName, number> = { local: 0, remote: 0 };
  #items = 0;
  #batches = 0;
  #window: {
    items: number;
    readonly fromMs: number;
    readonly waitMs: Record<SideName, number>;
    readonly avoided: Record<SideName, number>;
  };

  constructor(
    time: VirtualTime,
    costs: Costs,
    environment: Environment,
    { candidate, ratio }: OffloadChoice,
    control?: RatioControl,
  ) {
    this.#time = time;
    this.#costs = costs;
    this.#environment = environment;
    this.#candidate = candidate ?? "";
    this.#itemsPerBatch = candidate === "p'3" ? 1 : BATCH;
    this.#counters = new Counters(candidate === null ? 0 : control?.ratio ?? ratio);
    this.#control = control;
    this.#host = new Servers(time, environment.localCores);
    this.#workers = new Servers(time, environment.remoteCores);
    this.#linkToWorkers = new Servers(time, 1);
    this.#linkFromWorkers = new Servers(time, 1);
    this.#disk = new Servers(time, 1);
    this.#window = this.#newWindow();
    this.#prepare();
  }

  /** Advances the clock until a batch is ready, and takes it. */
  next(): void {
    while (this.#batches === 0) {
      const side = this.#counters.next;
      const fromMs = this.#time.nowMs;
      this.#time.next();
      this.#window.waitMs[side] += this.#time.nowMs - fromMs;
    }
    this.#batches--;
    this.#window.items += this.#itemsPerBatch;
    this.#correct();
    this.#assemble();
  }

  /** Makes batches of the items that are ready, and prepares more. */
  #assemble(): void {
    for (;;) {
      const wanted = this.#counters.next;
      const side = this.#control === undefined ? wanted : this.#readySide(wanted);
      if (this.#batches >= READ_AHEAD || this.#ready[side] === 0) break;
      this.#ready[side]--;
      if (side === wanted) this.#counters.count(side);
      else this.#window.avoided[wanted]++;
      this.#items++;
      if (this.#items % this.#itemsPerBatch === 0) this.#batches++;
    }
    this.#prepare();
  }

  #readySide(wanted: SideName): SideName {
    const { receiveMs, prepareMs } = this.#costs;
    const side = (name: SideName) => ({
      isReady: this.#ready[name] > 0,
      aheadSinceMs: this.#inProgress[name] === 0 ? this.#time.nowMs : undefined,
    });
    const sides = { local: side("local"), remote: side("remote") };
    return readySide(wanted, sides, receiveMs[this.#candidate]! < prepareMs);
  }

  #prepare(): void {
    const { ratio } = this.#counters;
    const { localCores, remoteCores } = this.#environment;
    const ahead = READ_AHEAD * this.#itemsPerBatch;
    if (ratio < 1) this.#fill("local", ahead + localCores, () => this.#prepareLocally());
    if (ratio > 0) this.#fill("remote", ahead + 2 * remoteCores, () => this.#prepareRemotely());
  }

  #fill(side: SideName, itemsMax: number, begin: () => void): void {
    while (this.#ready[side] + this.#inProgress[side] < itemsMax) {
      this.#inProgress[side]++;
      begin();
    }
  }

  #prepareLocally(): void {
    this.#onHost(this.#costs.prepareMs, "local");
  }

  #prepareRemotely(): void {
    const { prepareMs, readBytes, bytes, receiveMs } = this.#costs;
    const { remoteDiskBytesPerSecond: disk, linkBytesPerSecond: link } = this.#environment;
    const perItem = MS_PER_SECOND / this.#itemsPerBatch;
    // With p'1, this host reads the files and sends their elements to workers.
    const [source, bytesPerSecond] = this.#candidate === "p'1"
      ? [this.#linkToWorkers, link]
      : [this.#disk, disk];
    source.serve(
      perItem * readBytes / bytesPerSecond,
      () =>
        this.#workers.serve(
          prepareMs / this.#itemsPerBatch,
          () =>
            this.#linkFromWorkers.serve(perItem * bytes / link, () =>
              this.#onHost(receiveMs[this.#candidate]!, "remote")),
        ),
    );
  }

  /** Uses a core of this host. Receiving has priority over preparing. */
  #onHost(msPerBatch: number, side: SideName): void {
    const ms = msPerBatch / this.#itemsPerBatch;
    this.#host.serve(ms, () => {
      this.#time.hostCpuMs += ms;
      this.#inProgress[side]--;
      this.#ready[side]++;
      this.#assemble();
    }, side === "remote");
  }

  #newWindow() {
    const none = () => ({ local: 0, remote: 0 });
    return { items: 0, fromMs: this.#time.nowMs, waitMs: none(), avoided: none() };
  }

  #correct(): void {
    const { items, fromMs, waitMs, avoided } = this.#window;
    const elapsedMs = this.#time.nowMs - fromMs;
    if (this.#control === undefined) return;
    if (items < WINDOW_ELEMENTS_MIN || elapsedMs < WINDOW_MS_MIN) return;
    const stepMs = elapsedMs / items;
    const local = waitMs.local + stepMs * avoided.local;
    const remote = waitMs.remote + stepMs * avoided.remote;
    if (this.#control.observe({ elements: items, elapsedMs, waitMs: { local, remote, both: 0 } })) {
      this.#counters = new Counters(this.#control.ratio);
    }
    this.#window = this.#newWindow();
  }
}
