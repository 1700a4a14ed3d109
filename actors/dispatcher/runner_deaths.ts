/**
 * Runners that die: the process or thread that runs a task's pipeline ends by a limit, a signal or by
 * itself. A task starts another runner only when the dispatcher has journaled the death and allows it.
 *
 * Deaths are counted by the piece of work that was run, on whichever workers and across restarts: the
 * split under DETERMINISTIC, the run of splits of a save, the share of a static policy, else the
 * iteration's pipeline. The iteration fails when one piece has killed so many runners.
 *
 * @module
 */
import { LeatError, type WireError } from "../../core/error.ts";
import type { AnswerOf, RequestOf } from "../runtime/protocol.ts";
import type { Deaths, Iteration, Task } from "./entities.ts";
import { failIteration, parametersOf } from "./iterations.ts";
import { isOrdered } from "./ordered.ts";
import { type DispatcherProtocol, TASK_ENDED } from "./protocol.ts";
import { deathsAt } from "./runner_deaths_state.ts";
import { failureOf } from "./saving.ts";
import { splitCount } from "./split_table.ts";
import type { DispatcherState } from "./state.ts";
import type { Turn } from "./turn.ts";

/** Of how a runner ended so many characters are kept. */
const MESSAGE_LENGTH_MAX = 1_000;

type DeathRequest = RequestOf<DispatcherProtocol, "runnerDied">;
type DeathAnswer = AnswerOf<DispatcherProtocol, "runnerDied">;

/**
 * See `DispatcherProtocol.runnerDied`.
 *
 * @param deathsMax So many deaths of one piece's runners fail the iteration.
 */
export function runnerDied(turn: Turn, request: DeathRequest, deathsMax: number): DeathAnswer {
  const { state } = turn;
  const { taskId, number, error: { code, message } } = request;
  const task = state.tasks.get(taskId);
  const iteration = state.iterations.get(task?.iterationId ?? -1);
  if (task === undefined || iteration === undefined) {
    throw new LeatError("failed_precondition", `Task ${taskId} has ended: it needs no runner`, {
      details: { reason: TASK_ENDED },
    });
  }
  const place = placeOf(state, task, iteration, request);
  if (number > task.runnerDeaths) {
    turn.commit({
      type: "runner_died",
      ...{ taskId, number, place, code },
      message: message.slice(0, MESSAGE_LENGTH_MAX),
    });
  }
  const deaths = deathsAt(iteration, place);
  if (iteration.error === null && deaths.runners.length >= deathsMax) {
    failIteration(turn, iteration, causeOf(state, task, iteration, deaths));
  }
  return { mayStart: iteration.error === null };
}

/** What the runner ran, as deaths are counted. */
function placeOf(
  state: DispatcherState,
  task: Task,
  iteration: Iteration,
  { place }: DeathRequest,
): number | null {
  const { save } = parametersOf(state, iteration);
  const isInPieces = isOrdered(state, iteration) || save !== undefined;
  if (!isInPieces) return state.modeOf(iteration).pieceOf(state, task, iteration);
  const { splits } = iteration;
  const total = splits === null ? 0 : splitCount(splits.bounds, 0);
  if (place === undefined ? save !== undefined : place < total) return place ?? null;
  throw new LeatError(
    "invalid_argument",
    `Task ${task.taskId} says that its runner died at split ${place}, but there are ${total} splits`,
  );
}

function causeOf(
  state: DispatcherState,
  { worker }: Task,
  iteration: Iteration,
  { place, runners }: Deaths,
): WireError {
  const { name, parameters } = state.jobs.get(iteration.jobId)!;
  const piece = isOrdered(state, iteration)
    ? `Split ${place} of job`
    : state.modeOf(iteration).namePiece(place);
  const ends = runners.map((death) => `on worker "${death.worker}": ${death.message}`);
  const error: WireError = {
    code: "aborted",
    message:
      `${piece} "${
        name ?? iteration.jobId
      }" was ended, because ${runners.length} runners of it died ` +
      `(${
        ends.join("; ")
      }). Mend the function that ends its process, or raise the limit that ended it`,
    details: { reason: RUNNERS_DIED },
  };
  return parameters.save === undefined ? error : failureOf({ state }, iteration, worker, error);
}

/** The `details.reason` of the error of an iteration whose runners kept dying. */
export const RUNNERS_DIED = "runners_died";
