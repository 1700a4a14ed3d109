/** Runs the experiments with a real worker in separate processes, and a simulated accelerator. */
import { type LocalCluster, type OffloadChoice, offloadProgress, planOffload } from "../../mod.ts";
import { decide } from "../../offload/decide.ts";
import { Accelerator } from "./accelerator.ts";
import type { Costs } from "./costs.ts";
import type { ExampleData } from "./data.ts";
import type { Outcome } from "./modelled.ts";
import { timeOfStep } from "./time_of_step.ts";
import type { Workload } from "./workloads.ts";

/** How much to measure. */
export interface Effort {
  readonly steps: number;
  readonly profileSteps: number;
  /** The ratios of the sweep, without 0. */
  readonly ratios: readonly number[];
  readonly onRun: (name: string) => void;
}

/** Where the worker is. */
export interface RealEnvironment {
  readonly environment: string;
  readonly service: LocalCluster | string;
}

/** Returns the largest number of runs that {@linkcode measureOne} makes. */
export const runsPerWorkload = (ratios: readonly number[]): number => 5 + 3 + ratios.length;

/** Profiles a workload, and measures the time of a step with each choice. */
export async function measureOne(
  workload: Workload,
  data: ExampleData,
  { environment, service }: RealEnvironment,
  costs: Costs,
  { steps, profileSteps, ratios, onRun }: Effort,
): Promise<Outcome> {
  const dataset = workload.dataset(workload.files(data));
  const { stepMs } = costs;
  const accelerator = new Accelerator(stepMs);
  const trainStep = () => accelerator.step();
  const time = async (name: string, choice: OffloadChoice, adapt = false) => {
    onRun(name);
    const isLocal = choice.candidate === null;
    const batches = isLocal ? dataset : dataset.offload({ service, plan: choice, adapt });
    const ms = await timeOfStep(batches, trainStep, { steps });
    if (!isLocal && offloadProgress(batches).fallbacks > 0) {
      console.error(`${workload.letter}, ${name}: the service failed, this host took over`);
    }
    return ms;
  };
  const fromMs = performance.now();
  const plan = await planOffload(dataset, { service, profileSteps, trainStep });
  const profileMs = performance.now() - fromMs;
  const { decision, metrics } = plan;
  const local = await time("local only", { candidate: null, ratio: 0 });
  const times = {
    local,
    allRemote: await time("all remote", { candidate: "p'3", ratio: 1 }),
    half: await time("half remote", { candidate: "p'3", ratio: 0.5 }),
    decided: decision.candidate === null ? local : await time("decision", decision),
    corrected: decision.candidate === null ? local : await time("corrected", decision, true),
  };
  const candidates = [];
  for (const candidate of metrics.candidates) {
    const { name } = candidate;
    const { ratio } = decide({ ...metrics, candidates: [candidate] });
    candidates.push({ name, ratio, time: await time(name, { candidate: name, ratio }) });
  }
  const candidate = decision.candidate ?? "p'3";
  const sweep: [number, number][] = [[0, local]];
  for (const ratio of ratios) {
    const name = `${candidate}, ${Math.round(100 * ratio)} %`;
    sweep.push([ratio, await time(name, { candidate, ratio })]);
  }
  return {
    ...{ workload, environment, provenance: "measured" },
    ...{ stepMs, decision, times, candidates, profileMs },
    sweeps: { [candidate]: sweep },
  };
}
