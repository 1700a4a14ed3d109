/**
 * Deaths of runners: a limit or a signal ended them, or they ended by themselves. The task starts
 * another runner only when the death is journaled and the dispatcher allows it. Deaths are counted
 * per piece of work, over all workers and restarts. Too many deaths at one piece fail the
 * iteration. The mode defines the pieces: shares, for example, or the whole pass.
 */
import type { LeatError, WireError } from "../../../core/error.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import type { Iteration } from "../state/entities.ts";
import { existingTask, failIteration } from "./iterations.ts";
import type { DispatcherProtocol } from "../protocol.ts";
import { deathsAt, LISTING } from "../state/runner_deaths_state.ts";
import type { Transaction } from "../transaction.ts";

/** At most this many characters of a runner's last error are kept. */
const MESSAGE_LENGTH_MAX = 1_000;
/** An error shows at most this many deaths, or it would be too long for an answer. */
const DEATHS_SHOWN_MAX = 8;

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
    const died = { taskId, number: deathNumber, place: piece, code, message: kept(message) };
    tx.append({ type: "runner_died", ...died });
  }
  return { mayStart: !failIfTooMany(tx, iteration, piece, task.worker, deathsMax) };
}

interface ListerDeath {
  readonly iterationId: number;
  readonly worker: string;
  readonly failure: LeatError;
}

/**
 * A runner died while it listed the iteration's splits. A file whose listing always does that must
 * not keep the clients waiting for ever, so these deaths are counted as those of tasks are.
 */
export function listerDied(
  tx: Transaction,
  { iterationId, worker, failure: { code, message } }: ListerDeath,
  deathsMax: number,
): void {
  const iteration = tx.state.iterations.get(iterationId);
  if (iteration === undefined || iteration.error !== null) return;
  tx.append({ type: "lister_died", iterationId, worker, code, message: kept(message) });
  failIfTooMany(tx, iteration, LISTING, worker, deathsMax);
}

function kept(message: string): string {
  return message.slice(0, MESSAGE_LENGTH_MAX).toWellFormed();
}

function failIfTooMany(
  tx: Transaction,
  iteration: Iteration,
  piece: number | null,
  worker: string,
  deathsMax: number,
): boolean {
  const { runners } = deathsAt(iteration, piece);
  if (runners.length < deathsMax) return false;
  const { state } = tx;
  const mode = state.modeOf(iteration);
  const { name } = state.jobs.get(iteration.jobId)!;
  const [what, culprit] = piece === LISTING
    ? [
      "Listing the splits of job",
      "Remove or replace the file that ends the process that reads it",
    ]
    : [mode.namePiece(piece), "Correct the function that ends its process"];
  const shown = runners.slice(-DEATHS_SHOWN_MAX);
  const ends = (shown.length < runners.length ? `the last ${shown.length}: ` : "") +
    shown.map((death) => `on worker "${death.worker}": ${death.message}`).join("; ");
  const error: WireError = {
    code: "aborted",
    message: `${what} "${name ?? iteration.jobId}" killed ${runners.length} runners, so the job ` +
      `failed (${ends}). ${culprit}, or raise the limit that ended the process`,
    details: { reason: RUNNERS_DIED },
  };
  failIteration(tx, iteration, mode.failure({ state, iteration }, worker, error));
  return true;
}

/** The `details.reason` of the error of an iteration whose runners kept dying. */
export const RUNNERS_DIED = "runners_died";
