/** Runs the paper's experiments in the model: profiling, the decision, and a sweep of all ratios. */
import type { OffloadChoice, OffloadDecision, OffloadMetrics } from "../../mod.ts";
import { RatioControl } from "../../offload/adapt.ts";
import { type CandidateMetrics, decide, isBehind, staysLocal } from "../../offload/decide.ts";
import { PROFILE_STEPS } from "../../offload/plan.ts";
import { CHEAP_SHARE, FIRST_MARGIN } from "../../offload/planner.ts";
import { profileCandidate, profileLocal } from "../../offload/profile.ts";
import type { Costs } from "./costs.ts";
import { type Environment, ENVIRONMENTS } from "./environments.ts";
import { ModelledTraining, VirtualTime } from "./model.ts";
import type { Workload } from "./workloads.ts";

const WARM_UP_STEPS = 20;
/** With a corrected ratio, this many times as many steps run: the ratio needs some hundred to settle. */
const CORRECTED_STEPS = 10;
/** The ratios of the sweep, in steps of 10 % as in the paper. */
const RATIOS: readonly number[] = Array.from({ length: 11 }, (_, i) => i / 10);
const LOCAL: OffloadChoice = { candidate: null, ratio: 0 };

/** The mean time of a step, including waiting, in ms. */
export interface Times {
  readonly local: number;
  /** With p'3 for all data, and for half. */
  readonly allRemote: number;
  readonly half: number;
  /** With the decision of algorithm 1, and with its ratio corrected while training runs. */
  readonly decided: number;
  readonly corrected: number;
}

/** The results of a workload in one environment. */
export interface Outcome {
  readonly workload: Workload;
  /** The environment's name. */
  readonly environment: string;
  readonly provenance: "measured" | "modelled";
  readonly stepMs: number;
  readonly decision: OffloadDecision;
  readonly times: Times;
  /** Each candidate, with the ratio that algorithm 1 decides if it is the only candidate. */
  readonly candidates: readonly {
    readonly name: string;
    readonly ratio: number;
    readonly time: number;
  }[];
  /** By candidate: the time of a step with each of the ratios. */
  readonly sweeps: Readonly<Record<string, readonly (readonly [ratio: number, time: number])[]>>;
  /** How long profiling took, in ms. */
  readonly profileMs: number;
}

/** The shortest step time of the sweeps and of the local run, in ms. */
export function bestOf({ sweeps, times }: Outcome): number {
  return Math.min(times.local, ...Object.values(sweeps).flat().map(([, time]) => time));
}

/** Runs a workload in every environment. */
export async function modelAll(
  workload: Workload,
  costs: Costs,
  steps: number,
  onDone: () => void,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const environment of ENVIRONMENTS) {
    outcomes.push(await modelOne(workload, costs, environment, steps));
    onDone();
  }
  return outcomes;
}

async function modelOne(
  workload: Workload,
  costs: Costs,
  environment: Environment,
  steps: number,
): Promise<Outcome> {
  const time = (choice: OffloadChoice) => timeOfStep(costs, environment, choice, steps);
  const { metrics, profileMs } = await profile(costs, environment);
  const decision = decide(metrics);
  const names = Object.keys(costs.receiveMs);
  const decided = time(decision);
  return {
    ...{ workload, environment: environment.name, provenance: "modelled" },
    ...{ stepMs: costs.stepMs, decision, profileMs },
    times: {
      local: time(LOCAL),
      allRemote: time({ candidate: "p'3", ratio: 1 }),
      half: time({ candidate: "p'3", ratio: 0.5 }),
      decided,
      corrected: decision.candidate === null ? decided : timeOfStep(
        ...[costs, environment, decision, CORRECTED_STEPS * steps] as const,
        new RatioControl(decision.ratio),
      ),
    },
    candidates: metrics.candidates.map((candidate) => {
      const { ratio } = decide({ ...metrics, candidates: [candidate] });
      const { name } = candidate;
      return { name, ratio, time: time({ candidate: name, ratio }) };
    }),
    sweeps: Object.fromEntries(names.map((candidate) => [
      candidate,
      RATIOS.map((ratio) => [ratio, time({ candidate, ratio })] as const),
    ])),
  };
}

function timeOfStep(
  costs: Costs,
  environment: Environment,
  choice: OffloadChoice,
  steps: number,
  control?: RatioControl,
): number {
  const time = new VirtualTime();
  const training = new ModelledTraining(time, costs, environment, choice, control);
  const run = (steps: number) => {
    for (let i = 0; i < steps; i++) {
      training.next();
      time.advance(costs.stepMs);
    }
  };
  run(WARM_UP_STEPS);
  const fromMs = time.nowMs;
  run(steps);
  return (time.nowMs - fromMs) / steps;
}

/** Runs the production profiler with the clocks of the model. */
async function profile(
  costs: Costs,
  environment: Environment,
): Promise<{ readonly metrics: OffloadMetrics; readonly profileMs: number }> {
  const time = new VirtualTime();
  const advance = (ms: number) => {
    time.advance(ms);
    return Promise.resolve();
  };
  const options = {
    clocks: { nowMs: () => time.nowMs, cpuMs: () => time.hostCpuMs },
    steps: PROFILE_STEPS,
    sleep: advance,
    train: () => advance(costs.stepMs),
  };
  const batch = new Uint8Array(costs.bytes);
  const open = (choice: OffloadChoice) => () => {
    const training = new ModelledTraining(time, costs, environment, choice);
    return {
      next: () => {
        training.next();
        return Promise.resolve({ done: false, value: batch } as const);
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  };
  const { batch: _, isComplete: __, ...local } = (await profileLocal(open(LOCAL), options))!;
  const candidates: CandidateMetrics[] = [];
  // The planner, too, measures p'3 first.
  const names = staysLocal(local) ? [] : Object.keys(costs.receiveMs).sort().reverse();
  let [bestThroughput, reportOnlyMs] = [0, 0];
  for (const candidate of names) {
    const Ocycle = candidates[0]?.Ocycle ?? 0;
    // The planner would not measure this candidate. It is measured only for the report.
    const isReportOnly = candidate === "p'2" && Ocycle <= CHEAP_SHARE * local.Pcycle;
    const fromMs = time.nowMs;
    const opened = open({ candidate, ratio: 1 });
    const isDecided = (Rthp: number) => isBehind(local, candidates, Rthp, Ocycle);
    const localStepMs = 1_000 * costs.bytes / local.Lthp;
    const limited = { ...options, localStepMs, firstThroughputMin: FIRST_MARGIN * bestThroughput };
    const { metrics, firstThroughput } =
      (await profileCandidate(candidate, opened, limited, isDecided))!;
    bestThroughput = Math.max(bestThroughput, firstThroughput);
    candidates.push(metrics);
    if (isReportOnly) reportOnlyMs += time.nowMs - fromMs;
  }
  return { metrics: { ...local, candidates }, profileMs: time.nowMs - reportOnlyMs };
}
