/**
 * Deaths of runners: a limit or a signal ended them, or they ended by themselves. The task starts
 * another runner only when the death is journaled and the dispatcher allows it. Deaths are counted
 * per piece of work, over all workers and restarts. Too many deaths at one piece fail the
 * iteration. The mode defines the pieces: shares, for example, or the whole pass.
 */
import type { WireError } from "../../../core/error.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import type { Deaths, Iteration, Task } from "../state/entities.ts";
import { existingTask, failIteration } from "./iterations.ts";
import type { DispatcherProtocol } from "../protocol.ts";
import { deathsAt } from "../state/runner_deaths_state.ts";
import type { DispatcherState } from "../state/state.ts";
import type { Transaction } from "../transaction.ts";

/** At most this many characters of a runner's last error are kept. */
const MESSAGE_LENGTH_MAX = 1_000;

type DeathRequest = RequestOf<DispatcherProtocol, "runnerDied">;
type DeathAnswer = AnswerOf<DispatcherProtocol, "runnerDied">;

/** Handles `DispatcherProtocol.runnerDied`. `deathsMax` deaths at one piece fail the iteration. */
export function runnerDied(tx: Transaction, request: DeathRequest, deathsMax: number): DeathAnswer {
  const { state } = tx;
  const { taskId, number: deathNumber, error: { code, message } } = request;
  const [task, iteration] = existingTask(state, taskId, "it needs no runner");
  // A failed `distributedSave` keeps its tasks. Their runners' deaths must not fill the journal.
  if (iteration.error !== null) return { mayStart: false };
  const mode = state.modeOf(iteration);
  const piece = mode.pieceOf({ state, iteration }, task, request.place);
  if (deathNumber > task.runnerDeaths) {
    tx.append({
      type: "runner_died",
      ...{ taskId, number: deathNumber, place: piece, code },
      message: message.slice(0, MESSAGE_LENGTH_MAX).toWellFormed(),
    });
  }
  const deaths = deathsAt(iteration, piece);
  if (deaths.runners.length < deathsMax) return { mayStart: true };
  failIteration(tx, iteration, causeOf(state, task, iteration, deaths));
  return { mayStart: false };
}

function causeOf(
  state: DispatcherState,
  { worker }: Task,
  iteration: Iteration,
  { place: piece, runners }: Deaths,
): WireError {
  const { name } = state.jobs.get(iteration.jobId)!;
  const mode = state.modeOf(iteration);
  const ends = runners.map((death) => `on worker "${death.worker}": ${death.message}`);
  const error: WireError = {
    code: "aborted",
    message: `${mode.namePiece(piece)} "${name ?? iteration.jobId}" killed ` +
      `${runners.length} runners, so the job failed (${
        ends.join("; ")
      }). Correct the function that ends ` +
      "its process, or raise the limit that ended the process",
    details: { reason: RUNNERS_DIED },
  };
  return mode.failure({ state, iteration }, worker, error);
}

/** The `details.reason` of the error of an iteration whose runners kept dying. */
export const RUNNERS_DIED = "runners_died";
