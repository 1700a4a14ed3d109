/**
 * The faults of a run and their probabilities, drawn from its seed. So a batch of seeds covers many
 * combinations of faults, and each run lacks some faults ("swarm testing").
 */
import type { SimRandom } from "../engine/random.ts";

/** The faults of one run. Probabilities are per message unless stated otherwise. */
export interface FaultOptions {
  readonly lossProbability: number;
  readonly duplicateProbability: number;
  /** Probability of a delay so long that later messages overtake it. */
  readonly reorderProbability: number;
  readonly delayMinMs: number;
  readonly delayMaxMs: number;
  /** Bandwidth per direction of a link, in bytes per second; default: unlimited. */
  readonly bytesPerSecond?: number;
  /** Longest additional delay of a reordered or duplicated message. */
  readonly reorderDelayMaxMs: number;
  /** Probability that a link stalls for up to `clogMaxMs`. */
  readonly clogProbability: number;
  readonly clogMaxMs: number;
  /** Probability that the link breaks without notice to either end. */
  readonly linkBreakProbability: number;
  /** Probability that both ends of the link are closed, as when a proxy between them restarts. */
  readonly linkCloseProbability: number;
  /**
   * Probability that one end of the link is closed, and the other hears nothing, as when a machine
   * between them dies.
   */
  readonly linkHalfCloseProbability: number;
  /** Maximum bytes in flight per direction of a link. Messages beyond it are lost. */
  readonly inFlightBytesMax: number;
  /** Probability that an attempt to open a link fails. */
  readonly connectFailureProbability: number;
  /** How long a dialler waits for a silent node. */
  readonly connectTimeoutMs: number;
  /** Time after which a silent link is closed. */
  readonly silenceMs: number;
  /** Probability per crash that the node vanishes without resetting its links. */
  readonly silentCrashProbability: number;
  /** Which nodes a partition separates: one node, or a random subset. */
  readonly partition: "none" | "isolate_one" | "halves";
  /** Whether a partition cuts both directions. */
  readonly partitionSymmetric: boolean;
  readonly partitionMaxMs: number;
  /** Longest pause of a node; 0: never. */
  readonly pauseMaxMs: number;
  /** Largest deviation of a node's clocks from true time, in parts per million. */
  readonly clockDriftPpmMax: number;
  /** Largest jump of a node's wall clock; 0: never. */
  readonly wallClockStepMaxMs: number;
  /** Longest time for which a disk is full; 0: never. */
  readonly diskFullMaxMs: number;
  readonly diskSyncMinMs: number;
  readonly diskSyncMaxMs: number;
  /** Probability that an enabled fault point fires. */
  readonly faultPointProbability: number;
  /**
   * Minimum share of the message faults (loss, delay and all others) that a direction between two nodes
   * has. Each direction draws its share between this and 1. 1: all directions are equal.
   */
  readonly directionShareMin: number;
  /** Maximum time to clog some nodes or directions one by one and to free them again; 0: never. */
  readonly swizzleMaxMs: number;
  /** Maximum time of an event on a slow node; 0: no node is slow. */
  readonly slowTurnMaxMs: number;
  /** Maximum time for which a node is slow. */
  readonly slowForMaxMs: number;
  /** Maximum sleep of a machine, which stops its monotonic clock; 0: never. */
  readonly suspendMaxMs: number;
  /** Resolution of the monotonic clocks of some nodes; 0: the finest. */
  readonly clockGrainMs: number;
  /** Probability per write that it takes longer. */
  readonly diskSlowProbability: number;
  readonly diskSlowMaxMs: number;
  /** Probability per write that it fails, in part or completely. The log then fails as well. */
  readonly diskErrorProbability: number;
  /** Probability that all crashes of a run happen together, as of nodes on one machine. */
  readonly crashTogetherProbability: number;
  /** Probability per crash of a worker that it restarts under another name, as on another machine. */
  readonly moveProbability: number;
  /** Latest end of all faults; default: the workload's. */
  readonly healAfterMaxMs?: number;
  /**
   * Whether messages are copied instead of encoded and decoded. This is no fault, but it is drawn with
   * the faults. It makes the run shorter, and changes nothing else.
   */
  readonly copiesMessages: boolean;
}

/** No faults: nothing is lost, and everything takes a little time. */
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
  linkHalfCloseProbability: 0,
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

/** Share of runs that copy messages; the others use the codec. */
const COPIED_SHARE = 31 / 32;

export function drawFaults(random: SimRandom): FaultOptions {
  const oneOf = (...values: [number, ...number[]]) => random.pick(values);
  return {
    lossProbability: oneOf(0, 0.01, 0.1, 0.2),
    duplicateProbability: oneOf(0, 0.01, 0.1),
    reorderProbability: oneOf(0, 0.02, 0.2),
    delayMinMs: oneOf(0.1, 1),
    delayMaxMs: oneOf(2, 10, 50),
    reorderDelayMaxMs: oneOf(5, 50, 500),
    clogProbability: oneOf(0, 0.001, 0.01),
    clogMaxMs: oneOf(50, 1_000),
    linkBreakProbability: oneOf(0, 0.001, 0.005),
    inFlightBytesMax: oneOf(1_500, 16_384, 2 ** 30),
    connectFailureProbability: oneOf(0, 0.1, 0.3),
    connectTimeoutMs: oneOf(200, 1_000),
    silenceMs: oneOf(500, 2_000),
    silentCrashProbability: oneOf(0, 0.5, 1),
    partition: random.pick(["none", "none", "isolate_one", "halves"]),
    partitionSymmetric: random.chance(0.5),
    partitionMaxMs: oneOf(100, 1_500),
    pauseMaxMs: oneOf(0, 20, 500),
    clockDriftPpmMax: oneOf(0, 100, 10_000),
    wallClockStepMaxMs: oneOf(0, 1_000, 3_600_000),
    diskFullMaxMs: oneOf(0, 0, 100, 2_000),
    diskSyncMinMs: oneOf(0, 0.5),
    diskSyncMaxMs: oneOf(1, 5, 30),
    faultPointProbability: oneOf(0, 0.05, 0.25),
    directionShareMin: oneOf(1, 0.5, 0),
    swizzleMaxMs: oneOf(0, 0, 500, 3_000),
    slowTurnMaxMs: oneOf(0, 0, 0.5, 5),
    slowForMaxMs: oneOf(100, 2_000),
    suspendMaxMs: oneOf(0, 0, 200, 5_000),
    clockGrainMs: oneOf(0, 0, 1, 16),
    diskSlowProbability: oneOf(0, 0.01, 0.1),
    diskSlowMaxMs: oneOf(100, 1_000),
    diskErrorProbability: oneOf(0, 0, 0.002, 0.02),
    crashTogetherProbability: oneOf(0, 0.5),
    moveProbability: oneOf(0, 0, 0.5),
    linkCloseProbability: oneOf(0, 0.001, 0.005),
    copiesMessages: random.chance(COPIED_SHARE),
    linkHalfCloseProbability: oneOf(0, 0, 0.001, 0.005),
  };
}

/** Returns a line with a run's options, to print next to its seed. */
export function formatOptions(options: FaultOptions): string {
  return Object.entries(options).map(([name, value]) => `${name}=${value}`).join(" ");
}
