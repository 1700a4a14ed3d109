/**
 * A simulated node. It runs the same actor system as in production, in a simulated world. It can crash,
 * and restart with the same disk.
 */
import { ActorSystem } from "../../actors/runtime/system.ts";
import { LeatError } from "../../core/error.ts";
import { SimDisk } from "./disk.ts";
import { SimHost } from "../host.ts";
import { Life } from "./life.ts";
import type { SimCluster } from "./cluster.ts";
import type { SimRandom } from "./random.ts";
import { SimWorld } from "../world.ts";

/** Starts a node's actors. It is called at each start of the node. */
export type Boot = (node: SimNode) => void;

/** Time until a node whose actors gave up is restarted, in ms. */
const OPERATOR_MS = 1_000;

interface Running {
  readonly life: Life;
  readonly world: SimWorld;
  readonly host: SimHost;
  readonly system: ActorSystem;
}

/** A machine of the cluster. */
export class SimNode {
  readonly name: string;
  readonly disk: SimDisk;
  readonly #cluster: SimCluster;
  /** Fork it: all lives of the node share it. */
  readonly random: SimRandom;
  /** Starts the node's actors. */
  readonly boot: Boot;
  /** Whether the node may dial another node, as its actors declare. */
  mayDial: (node: string) => boolean = () => true;
  /** Clock drift in parts per million. It belongs to the machine, so it survives a crash. */
  readonly #driftPpm: number;
  readonly #clockGrainMs: number;
  #running: Running | undefined;
  #lives = 0;
  #isWanted = true;

  constructor(cluster: SimCluster, name: string, boot: Boot) {
    this.name = name;
    this.#cluster = cluster;
    this.random = cluster.random.fork(`node ${name}`);
    this.boot = boot;
    const { clockDriftPpmMax, clockGrainMs } = cluster.network.faults;
    this.#clockGrainMs = this.random.fork("grain").chance(0.5) ? clockGrainMs : 0;
    this.#driftPpm = this.random.fork("drift").between(-clockDriftPpmMax, clockDriftPpmMax);
    this.disk = new SimDisk({
      random: this.random.fork("disk"),
      counters: cluster.counters,
      faults: () => cluster.network.faults,
    });
  }

  get isUp(): boolean {
    return this.#running !== undefined;
  }

  /** Whether the node should run. A stopped node is not restarted automatically. */
  get isWanted(): boolean {
    return this.#isWanted;
  }

  /** Number of starts. */
  get lives(): number {
    return this.#lives;
  }

  /** Returns a function that tells whether the node's current life still lasts. */
  lifetime(): () => boolean {
    const current = this.#running;
    return () => current !== undefined && this.#running === current;
  }

  /** @throws LeatError `unavailable` while the node is down, as `world` and `host` do. */
  get system(): ActorSystem {
    return this.#up().system;
  }

  get world(): SimWorld {
    return this.#up().world;
  }

  /** The host of pipelines on this node. */
  get host(): SimHost {
    return this.#up().host;
  }

  /** Starts the node for the first time, after a crash, or after a stop. */
  start(): void {
    if (this.#running !== undefined) {
      throw new LeatError("failed_precondition", `${this.name} runs already`);
    }
    this.#isWanted = true;
    const { scheduler, network, faultPoints, trace, counters } = this.#cluster;
    const life = new Life(scheduler, this.name, ++this.#lives);
    if (life.number > 1) counters.count("node_restarted");
    trace.mark(scheduler.nowUs, `${this.name} starts`);
    const world = new SimWorld({
      scheduler,
      life,
      random: this.random.fork(`life ${life.number}`),
      disk: this.disk,
      faultPoints,
      driftPpm: this.#driftPpm,
      grainMs: this.#clockGrainMs,
      onLog: (line) => this.#cluster.logged(line),
    });
    const system = new ActorSystem({
      node: this.name,
      world,
      connector: network.connector(life),
      mayDial: (node) => this.mayDial(node),
      kinds: this.#cluster.kinds,
    });
    this.#running = { life, world, system, host: new SimHost(world, this.#cluster.files.of(life)) };
    network.listen(life, system.id, (link) => system.attach(link));
    system.failed.then(() => this.#gaveUp(life));
    this.boot(this);
    this.#cluster.onStart(this);
  }

  /**
   * Crashes the node like a power cut, which loses its memory and a part of the records that are not
   * durable.
   * @param options `silent`: whether the machine vanishes without resetting its links. Default false.
   */
  crash(options: { readonly silent?: boolean } = {}): void {
    const { life } = this.#up();
    const { network, trace, counters, scheduler } = this.#cluster;
    trace.mark(scheduler.nowUs, `${this.name} crashes`);
    counters.count("node_crashed");
    this.#running = undefined;
    this.disk.crash();
    life.end();
    network.crash(life, options.silent === true);
  }

  /**
   * Stops the node gracefully, like a process that gets a signal. The node stays down until it is
   * started. Resolves when its life has ended, even by a crash.
   */
  async stop(): Promise<void> {
    this.#isWanted = false;
    const running = this.#running;
    if (running === undefined) return;
    const { life, system } = running;
    await Promise.race([system.stop(), life.ended]);
    if (this.#running !== running) return;
    const { network, trace, scheduler } = this.#cluster;
    trace.mark(scheduler.nowUs, `${this.name} stops`);
    this.#running = undefined;
    life.end();
    network.crash(life, false);
  }

  /** Pauses the node. Its events wait. */
  pause(durationMs: number): void {
    this.#cluster.counters.count("node_paused");
    this.#up().life.pause(durationMs);
  }

  /**
   * Makes every event of this life take up to `turnMaxMs` of the node's time, for `durationMs`. Other
   * events wait meanwhile.
   */
  slowDown(durationMs: number, turnMaxMs: number): void {
    const { counters } = this.#cluster;
    const { life } = this.#up();
    counters.count("node_slow");
    const rng = this.random.fork(`slow ${life.number} ${counters.get("node_slow")}`);
    life.slow(() => rng.between(0, turnMaxMs));
    this.#cluster.after(durationMs, "quick again", () => life.slow(undefined));
  }

  /** Suspends the machine. Its monotonic clock stops, so only the wall clock shows the sleep. */
  suspend(durationMs: number): void {
    this.#cluster.counters.count("node_suspended");
    const { life, world } = this.#up();
    const awakeAtUs = Math.max(life.pausedUntilUs, this.#cluster.scheduler.nowUs);
    life.pause(durationMs);
    world.slept(Math.max(0, life.pausedUntilUs - awakeAtUs));
  }

  stepWallClock(byMs: number): void {
    this.#cluster.counters.count("wall_clock_stepped");
    this.#up().world.stepWallClock(byMs);
  }

  /** Restarts a node whose actors died too often. In production the process exits and is restarted. */
  #gaveUp(life: Life): void {
    if (!life.alive || !this.#isWanted) return;
    this.#cluster.counters.tally("node_gave_up");
    this.crash();
    this.#cluster.after(OPERATOR_MS, "restart", () => {
      if (!this.isUp && this.isWanted) this.start();
    });
  }

  #up(): Running {
    if (this.#running === undefined) throw new LeatError("unavailable", `${this.name} is down`);
    return this.#running;
  }
}
