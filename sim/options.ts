/**
 * Which faults a run has, and how often: drawn from its seed, so that a batch of seeds covers many
 * kinds of trouble ("swarm testing"), with some of it absent in each run.
 *
 * @module
 */
import type { SimRandom } from "./random.ts";

/** The faults of one run. Probabilities are per message unless they say otherwise. */
export interface FaultOptions {
  readonly lossProbability: number;
  readonly duplicateProbability: number;
  /** Of being held back so long that later messages overtake it. */
  readonly reorderProbability: number;
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
  /** How much one direction of a link carries, in bytes per second; left out: any amount at once. */
  readonly bytesPerSecond?: number;
  /** How much longer a reordered or duplicated message takes at most. */
  readonly reorderDelayMaxMs: number;
  /** Of a link standing still for up to `clogMaxMs`. */
  readonly clogProbability: number;
  readonly clogMaxMs: number;
  /** Of the link breaking, with no word to either end. */
  readonly linkBreakProbability: number;
  /** Of both ends of the link being closed, as by a proxy between that is restarted. */
  readonly linkCloseProbability: number;
  /** Bytes in flight per direction of a link; what is sent beyond it is lost. */
  readonly inFlightBytesMax: number;
  /** Per attempt to open a link. */
  readonly connectFailureProbability: number;
  /** How long a dialler waits for a node that says nothing. */
  readonly connectTimeoutMs: number;
  /** After how long a link that says nothing is given up. */
  readonly silenceMs: number;
  /** Per crash: the node vanishes without a word, instead of its links being reset. */
  readonly silentCrashProbability: number;
  readonly partition: "none" | "isolate_one" | "halves";
  /** Whether a partition cuts both directions. */
  readonly partitionSymmetric: boolean;
  readonly partitionMaxMs: number;
  /** How long a node stands still when it does; 0: never. */
  readonly pauseMaxMs: number;
  /** How much faster or slower than true time a node's clocks run at most, in parts per million. */
  readonly clockDriftPpmMax: number;
  /** How far a node's wall clock jumps when it does; 0: never. */
  readonly wallClockStepMaxMs: number;
  /** How long a disk stays full when it is; 0: never. */
  readonly diskFullMaxMs: number;
  readonly diskSyncMinMs: number;
  readonly diskSyncMaxMs: number;
  /** Of a fault point firing, once it is enabled for the run. */
  readonly faultPointProbability: number;
  /**
   * Each direction between two nodes has a share of its own of what messages meet (loss, delay and all
   * else), drawn between this and 1. 1: all are alike.
   */
  readonly directionShareMin: number;
  /** How long it takes to clog some nodes or directions one by one and to free them again; 0: never. */
  readonly swizzleMaxMs: number;
  /** How long each event of a node takes while it is slow, at most; 0: no node is ever slow. */
  readonly slowTurnMaxMs: number;
  /** How long it stays slow, at most. */
  readonly slowForMaxMs: number;
  /** How long a machine sleeps when it does, its monotonic clock with it; 0: never. */
  readonly suspendMaxMs: number;
  /** In what steps the monotonic clocks of some nodes go on; 0: in the finest. */
  readonly clockGrainMs: number;
  /** Per write: it takes so much longer. */
  readonly diskSlowProbability: number;
  readonly diskSlowMaxMs: number;
  /** Per write: it fails, in part or as a whole, and the log with it. */
  readonly diskErrorProbability: number;
  /** That all crashes of a run come in one moment, as of nodes of one machine. */
  readonly crashTogetherProbability: number;
  /** Per crash of a worker: it comes back under another name, as on another machine. */
  readonly moveProbability: number;
  /** When all trouble ends, at the latest; left out: as the workload has it. */
  readonly healAfterMaxMs?: number;
  /**
   * Messages are copied, instead of being written as bytes and read: no fault, but drawn with them. The
   * run is the same, in less time.
   */
  readonly copiesMessages: boolean;
}

/** A calm network and disk: nothing is lost, and everything takes a little time. */
export const NO_FAULTS: FaultOptions = {
  lossProbability: 0,
  duplicateProbability: 0,
  reorderProbability: 0,
  delayMinMs: 0.2,
  delayMaxMs: 1,
  reorderDelayMaxMs: 0,
  clogProbability: 0,
  clogMaxMs: 0,
  linkBreakProbability: 0,
  linkCloseProbability: 0,
  inFlightBytesMax: 2 ** 30,
  connectFailureProbability: 0,
  connectTimeoutMs: 1_000,
  silenceMs: 3_000,
  silentCrashProbability: 0,
  partition: "none",
  partitionSymmetric: true,
  partitionMaxMs: 0,
  pauseMaxMs: 0,
  clockDriftPpmMax: 0,
  wallClockStepMaxMs: 0,
  diskFullMaxMs: 0,
  diskSyncMinMs: 0.5,
  diskSyncMaxMs: 2,
  faultPointProbability: 0,
  directionShareMin: 1,
  swizzleMaxMs: 0,
  slowTurnMaxMs: 0,
  slowForMaxMs: 0,
  suspendMaxMs: 0,
  clockGrainMs: 0,
  diskSlowProbability: 0,
  diskSlowMaxMs: 0,
  diskErrorProbability: 0,
  crashTogetherProbability: 0,
  moveProbability: 0,
  copiesMessages: false,
};

/** Of so many runs messages are copied; in the others they go through the codec. */
const COPIED_SHARE = 31 / 32;

/** Draws the faults of a run. */
export function drawFaults(random: SimRandom): FaultOptions {
  const some = (...values: [number, ...number[]]) => random.pick(values);
  return {
    lossProbability: some(0, 0.01, 0.1, 0.2),
    duplicateProbability: some(0, 0.01, 0.1),
    reorderProbability: some(0, 0.02, 0.2),
    delayMinMs: some(0.1, 1),
    delayMaxMs: some(2, 10, 50),
    reorderDelayMaxMs: some(5, 50, 500),
    clogProbability: some(0, 0.001, 0.01),
    clogMaxMs: some(50, 1_000),
    linkBreakProbability: some(0, 0.001, 0.005),
    inFlightBytesMax: some(1_500, 16_384, 2 ** 30),
    connectFailureProbability: some(0, 0.1, 0.3),
    connectTimeoutMs: some(200, 1_000),
    silenceMs: some(500, 2_000),
    silentCrashProbability: some(0, 0.5, 1),
    partition: random.pick(["none", "none", "isolate_one", "halves"]),
    partitionSymmetric: random.chance(0.5),
    partitionMaxMs: some(100, 1_500),
    pauseMaxMs: some(0, 20, 500),
    clockDriftPpmMax: some(0, 100, 10_000),
    wallClockStepMaxMs: some(0, 1_000, 3_600_000),
    diskFullMaxMs: some(0, 0, 100, 2_000),
    diskSyncMinMs: some(0, 0.5),
    diskSyncMaxMs: some(1, 5, 30),
    faultPointProbability: some(0, 0.05, 0.25),
    directionShareMin: some(1, 0.5, 0),
    swizzleMaxMs: some(0, 0, 500, 3_000),
    slowTurnMaxMs: some(0, 0, 0.5, 5),
    slowForMaxMs: some(100, 2_000),
    suspendMaxMs: some(0, 0, 200, 5_000),
    clockGrainMs: some(0, 0, 1, 16),
    diskSlowProbability: some(0, 0.01, 0.1),
    diskSlowMaxMs: some(100, 1_000),
    diskErrorProbability: some(0, 0, 0.002, 0.02),
    crashTogetherProbability: some(0, 0.5),
    moveProbability: some(0, 0, 0.5),
    linkCloseProbability: some(0, 0.001, 0.005),
    copiesMessages: random.chance(COPIED_SHARE),
  };
}

/** One line that shows a run's options, to stand beside its seed. */
export function formatOptions(options: FaultOptions): string {
  return Object.entries(options).map(([name, value]) => `${name}=${value}`).join(" ");
}
