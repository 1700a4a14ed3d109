/** Runners that die because of their pipeline, like processes that exceed a limit. */
import type { OwnStep, RunnerFactory } from "../../actors/worker/runner/runner.ts";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { RunnersAround } from "./runners_around.ts";

/** The error codes that report the end of a process. */
const CODES: [LeatErrorCode, ...LeatErrorCode[]] = [
  "unavailable",
  "resource_exhausted",
  "deadline_exceeded",
];

/** What kills runners. */
interface Poison {
  /** Whether a runner's pipeline contains the poison. */
  readonly isIn: (graph: Uint8Array) => boolean;
  /** Whether the runner that lists the pipeline's splits dies. */
  readonly killsLister: () => boolean;
  /** Called for each runner with the poison. Returns whether it dies at a step. */
  readonly killer: () => (ownStep: OwnStep | undefined) => boolean;
  readonly onDeath: () => void;
}

/** Wraps runners to die of the poison. A dead runner answers every step with the error of its death. */
export function dyingRunners(
  runners: RunnerFactory,
  { isIn, killer, killsLister, onDeath }: Poison,
): RunnerFactory {
  let deaths = 0;
  const die = () => {
    const code = CODES[deaths++ % CODES.length]!;
    onDeath();
    const details = { reason: "runner_died" };
    return new LeatError(code, `The runner was ended (${code})`, { details });
  };
  return new RunnersAround(
    runners,
    (next, { graph }) => {
      if (!isIn(graph)) return next;
      const kills = killer();
      let death: LeatError | undefined;
      return (ownStep, wish) => {
        if (death === undefined && kills(ownStep)) death = die();
        return death === undefined ? next(ownStep, wish) : Promise.reject(death);
      };
    },
    (listSplits) => (graph, ...others) =>
      isIn(graph) && killsLister() ? Promise.reject(die()) : listSplits(graph, ...others),
  );
}
