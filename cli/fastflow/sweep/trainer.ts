/**
 * The trainer of one environment, in a process of its own with the CPUs of the environment: plans,
 * and then measures the decision and all others. Its argument is a {@linkcode TrainerTask} in JSON,
 * its output the {@linkcode TrainerResult}.
 */
import { setTimeout as sleep } from "node:timers/promises";
import {
  type OffloadChoice,
  type OffloadDecision,
  offloadProgress,
  planOffload,
} from "../../../mod.ts";
import { offloadDependencies } from "../../../offload/dependencies.ts";
import type { ExampleData } from "../data.ts";
import { type Length, timeOfStep } from "../time_of_step.ts";
import { type Letter, WORKLOADS } from "../workloads.ts";
import { bruteForce, finalistsOf, judge, keyOf, type Timed, type Verdict } from "./choices.ts";
import { coresWantedOf, type SweptEnvironment } from "./environments.ts";

export interface TrainerTask {
  readonly environment: SweptEnvironment;
  readonly service: string;
  readonly data: ExampleData;
  /** How long it may take. */
  readonly limitMs: number;
}

export interface TrainerResult {
  readonly letter: Letter;
  readonly stepMs: number;
  readonly decision: OffloadDecision;
  readonly verdict: Verdict;
  /** How long planning took. */
  readonly planningMs: number;
  readonly rounds: number;
  /** Every choice, once. */
  readonly first: readonly Timed[];
  /** The fastest, and the decision, in each round. */
  readonly finals: readonly Timed[];
  /** How often a service failed, so that this host took over. */
  readonly fallbacks: number;
}

/** An epoch reads the files so often: no run reaches its end. */
const ROUNDS = 6;
const STEPS_MAX = 600;
const WARM_UP_STEPS = 24;
/** The share of the time that the first round may take. */
const FIRST_SHARE = 0.3;
/** To open a pipeline, about. */
const OPENING_MS = 400;
const [ROUNDS_MIN, ROUNDS_WANTED, ROUNDS_MAX] = [3, 4, 9];
const COST_STEPS = 24;

if (import.meta.main) {
  const task = JSON.parse(Deno.args[0]!) as TrainerTask;
  console.log(JSON.stringify(await run(task)));
}

async function run({ environment, service, data, limitMs }: TrainerTask): Promise<TrainerResult> {
  const untilMs = performance.now() + limitMs;
  const { letter } = environment;
  const workload = WORKLOADS.find((at) => at.letter === letter)!;
  const files = workload.files(data);
  const paths = Array.from({ length: ROUNDS }, () => files.paths).flat();
  const dataset = workload.dataset({ ...files, paths });
  const stepMs = await cpuOfBatch(dataset) / coresWantedOf(environment, workload.coresWanted);
  let fallbacks = 0;
  const time = async (choice: OffloadChoice, length: Length) => {
    if (choice.candidate === null) return await timeOfStep(dataset, stepMs, length);
    const batches = dataset.offload({ service, plan: choice });
    const ms = await timeOfStep(batches, stepMs, length);
    fallbacks += offloadProgress(batches).fallbacks;
    return ms;
  };
  const plan = await planOffload(dataset, { service, trainStep: () => sleep(stepMs) });
  const { decision, planningMs } = plan;

  const all = bruteForce(["p'1", "p'2", "p'3"]);
  const eachMs = FIRST_SHARE * (untilMs - performance.now()) / all.length - OPENING_MS;
  const first: Timed[] = [];
  for (const choice of all) {
    first.push({ choice, times: [await time(choice, lengthOf(eachMs))] });
  }

  const finalists = finalistsOf(first, decision);
  const times = new Map(finalists.map((choice) => [keyOf(choice), [] as number[]]));
  const leftMs = untilMs - performance.now();
  const length = lengthOf(leftMs / ROUNDS_WANTED / finalists.length - OPENING_MS);
  let rounds = 0;
  for (let roundMs = 0; rounds < ROUNDS_MAX; rounds++) {
    const fromMs = performance.now();
    if (rounds >= ROUNDS_MIN && fromMs + roundMs > untilMs) break;
    // Each choice is measured once a round, so that what else the machine does hits all alike.
    const order = rounds % 2 === 0 ? finalists : finalists.toReversed();
    for (const choice of order) times.get(keyOf(choice))!.push(await time(choice, length));
    roundMs = performance.now() - fromMs;
  }
  const finals = finalists.map((choice) => ({ choice, times: times.get(keyOf(choice))! }));
  const chosen = { candidate: decision.candidate, ratio: decision.ratio };
  return {
    ...{ letter, stepMs, decision, planningMs, rounds, first, finals, fallbacks },
    verdict: judge(chosen, finals, first),
  };
}

/** Up to a third of the time warms up: the code of a new task is compiled. */
function lengthOf(ms: number): Length {
  return { steps: STEPS_MAX, warmUpSteps: WARM_UP_STEPS, limitMs: Math.max(200, ms * 2 / 3) };
}

/** CPU time to prepare a batch here, in ms. */
async function cpuOfBatch(dataset: Parameters<typeof timeOfStep>[0]): Promise<number> {
  const { cpuMs } = offloadDependencies();
  await using iterator = dataset.iterator();
  const read = async () => {
    for (let i = 0; i < COST_STEPS; i++) await iterator.next();
  };
  await read();
  const fromMs = cpuMs();
  await read();
  return (cpuMs() - fromMs) / COST_STEPS;
}
