/**
 * The faults of a run and their probabilities, drawn from its seed. So a batch of seeds covers many
 * kinds of faults ("swarm testing"), with some of them absent in each run.
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
  /** Maximum bytes in flight per direction of a link; more is lost. */
  readonly inFlightBytesMax: number;
  /** Per attempt to open a link. */
  readonly connectFailureProbability: number;
  /** How long a dialler waits for a silent node. */
  readonly connectTimeoutMs: number;
  /** Time after which a silent link is closed. */
  readonly silenceMs: number;
  /** Per crash: the node vanishes without resetting its links. */
  readonly silentCrashProbability: number;
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
   * Each direction between two nodes has its own share of the message faults (loss, delay and all
   * others), drawn between this and 1. 1: all are equal.
   */
  readonly directionShareMin: number;
  /** Time to clog some nodes or directions one by one and to free them again; 0: never. */
  readonly swizzleMaxMs: number;
  /** Longest time of an event on a slow node; 0: no node is slow. */
  readonly slowTurnMaxMs: number;
  /** Longest time for which a node is slow. */
  readonly slowForMaxMs: number;
  /** Longest sleep of a machine, with its monotonic clock; 0: never. */
  readonly suspendMaxMs: number;
  /** Resolution of the monotonic clocks of some nodes; 0: the finest. */
  readonly clockGrainMs: number;
  /** Per write: it takes longer. */
  readonly diskSlowProbability: number;
  readonly diskSlowMaxMs: number;
  /** Per write: it fails, in part or completely, and the log with it. */
  readonly diskErrorProbability: number;
  /** Probability that all crashes of a run happen together, as of nodes on one machine. */
  readonly crashTogetherProbability: number;
  /** Per crash of a worker: it restarts under another name, as on another machine. */
  readonly moveProbability: number;
  /** Latest end of all faults; default: the workload's. */
  readonly healAfterMaxMs?: number;
  /**
   * Whether messages are copied instead of encoded and decoded. This is no fault, but is drawn with
   * them: the run is the same, in less time.
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

/** One line with a run's options, to print next to its seed. */
export function formatOptions(options: FaultOptions): string {
  return Object.entries(options).map(([name, value]) => `${name}=${value}`).join(" ");
}
