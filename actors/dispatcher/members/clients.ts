/** Clients: the content of their heartbeat answers, and their end. */
import { LeatError } from "../../../core/error.ts";
import { definedFields } from "../../../core/tree.ts";
import type { AnswerOf, RequestOf } from "../../runtime/protocol.ts";
import type { Settings } from "../config.ts";
import type { Consumers } from "../modes/consumers.ts";
import { checkRounds } from "../modes/coordinated/rounds.ts";
import { type Client, isServing, type Iteration, type Task } from "../state/entities.ts";
import type { DispatcherProtocol, TaskSource } from "../protocol.ts";
import type { ReaderReport, TaskListChanges } from "../protocol_heartbeats.ts";
import type { JournalRecord } from "../journal/records.ts";
import { parametersOf } from "../jobs/iterations.ts";
import { checkSecret } from "../jobs/owners.ts";
import type { DispatcherState } from "../state/state.ts";
import { endUnread, mayRead } from "../jobs/targets.ts";
import type { Transaction } from "../transaction.ts";
import type { Figures } from "../report/figures.ts";
import { type IsDraining, whyStarved } from "../report/starvation.ts";

interface AboutClient {
  readonly clientId: number;
  readonly secret?: string;
}

/**
 * The client of a request, and its iteration.
 * @throws LeatError `permission_denied` without the client's secret; `not_found` or
 *   `failed_precondition` if the client has ended.
 */
export function clientOf(
  state: DispatcherState,
  { clientId, secret }: AboutClient,
): [Client, Iteration] {
  const client = state.clients.get(clientId);
  if (client !== undefined) {
    checkSecret(client, secret, clientId);
    return [client, state.iterations.get(client.iterationId)!];
  }
  const iterationId = state.releasedClient(clientId)?.iterationId;
  if (iterationId !== undefined && !state.iterations.has(iterationId)) {
    throw new LeatError(
      "failed_precondition",
      `Client ${clientId} timed out and its iteration was removed, or a restored reader has replaced ` +
        "this client, or it is a task of a job that no program reads; make a new iterator. If the " +
        "iteration was removed too soon, raise the dispatcher's clientTimeoutMs and jobGcTimeoutMs",
    );
  }
  throw new LeatError(
    "not_found",
    `Client ${clientId} is unknown: it was released, or it timed out (the dispatcher's ` +
      "clientTimeoutMs, or clientGraceMs after its connection was closed), or the dispatcher was " +
      "started again without its journal (--journal); make a new iterator",
  );
}

/**
 * The answer to a client of a save that was released after the save had ended. The next client of
 * the job removes the iteration, so without this answer the released client could miss the outcome.
 */
export function newsOfEnd(
  state: DispatcherState,
  { clientId, secret }: AboutClient,
): AnswerOf<DispatcherProtocol, "clientHeartbeat"> | undefined {
  const released = state.releasedClient(clientId);
  if (released?.saveEnd === undefined) return undefined;
  checkSecret(released, secret, clientId);
  const { error } = released.saveEnd;
  return { kind: "whole", tasks: [], finished: true, ...(error === null ? {} : { error }) };
}

/** The answer to a heartbeat: all tasks, or only those `changed` since the client's last list. */
export function newsFor(
  state: DispatcherState,
  client: Client,
  changed: ReadonlySet<number> | undefined,
  report: ReaderReport | undefined,
  { windowSplits, isDraining }: Pick<Settings, "windowSplits"> & {
    readonly isDraining: IsDraining;
  },
): AnswerOf<DispatcherProtocol, "clientHeartbeat"> {
  const iteration = state.iterations.get(client.iterationId)!;
  const mode = state.modeOf(iteration);
  const { finished, error } = iteration;
  const news = mode.newsFor({ state, iteration }, client, report, windowSplits);
  const starvation = whyStarved(state, iteration, [client], isDraining) ??
    mode.whyWaiting({ state, iteration }, windowSplits);
  return {
    ...(changed === undefined
      ? {
        kind: "whole",
        tasks: taskSources(state, client, iteration, state.tasksOfIteration(iteration.iterationId)),
      }
      : taskChanges(state, client, iteration, changed)),
    finished,
    ...(error === null ? {} : { error }),
    ...(starvation === null ? {} : { starvation }),
    ...(news === undefined ? {} : { news }),
  };
}

function taskChanges(
  state: DispatcherState,
  client: Client,
  iteration: Iteration,
  changed: ReadonlySet<number>,
): TaskListChanges {
  const tasks: Task[] = [];
  const endedTasks: number[] = [];
  for (const taskId of changed) {
    const task = state.tasks.get(taskId);
    if (isServing(task)) tasks.push(task);
    else endedTasks.push(taskId);
  }
  return { kind: "changes", tasks: taskSources(state, client, iteration, tasks), endedTasks };
}

/** The tasks that the client can read, completed ones included. */
function taskSources(
  state: DispatcherState,
  client: Client,
  iteration: Iteration,
  tasks: Iterable<Task>,
): TaskSource[] {
  const parameters = parametersOf(state, iteration);
  const sources: TaskSource[] = [];
  for (const { taskId, worker, source } of tasks) {
    const known = state.workers.get(worker);
    const isHidden = known !== undefined && !mayRead(parameters, client, known);
    if (source !== null && !isHidden) sources.push({ taskId, worker, source });
  }
  return sources;
}

export function releaseClient(
  tx: Transaction,
  request: RequestOf<DispatcherProtocol, "releaseClient">,
  { consumers, figures }: { readonly consumers: Consumers; readonly figures: Figures },
): null {
  const { clientId, secret, cancel = false, nextRound, leaves } = request;
  const { clients, iterations } = tx.state;
  const client = clients.get(clientId);
  if (client === undefined) return null;
  checkSecret(client, secret, clientId);
  // Before any change: what is refused must change nothing.
  checkRounds(clientId, [nextRound ?? 0]);
  figures.clientHeard(tx.state, clientId, request.figures, tx.nowMs);
  const iteration = iterations.get(client.iterationId)!;
  if (cancel) tx.state.modeOf(iteration).cancel(tx, iteration);
  // The client may have requested more rounds since its last heartbeat.
  consumers.stopsAt(clientId, nextRound);
  endClient(tx, clientId, "released", consumers, leaves);
  return null;
}

type ClientEnd = Extract<JournalRecord, { readonly type: "client_released" }>["why"];

/** Ends a client, and its iteration if nobody else can read that, or else tasks left unread. */
export function endClient(
  tx: Transaction,
  clientId: number,
  why: ClientEnd,
  consumers: Consumers,
  leaves?: true,
): void {
  const { state } = tx;
  const client = state.clients.get(clientId);
  if (client === undefined) return;
  const nextRound = consumers.nextRound(clientId) ?? null;
  const readsRounds = state.roundIndexOf(client.iterationId) !== undefined;
  const unreported = readsRounds ? consumers.unreported(clientId) : 0;
  tx.append({
    ...{ type: "client_released", clientId, why, nextRound },
    ...(unreported === 0 ? {} : { unreported }),
    ...definedFields({ leaves }),
  });
  const iteration = state.iterations.get(client.iterationId)!;
  const { iterationId, jobId } = iteration;
  const endsUnread = state.clientsOfIteration(iterationId).size === 0 &&
    state.modeOf(iteration).whenUnread(iteration) === "ends";
  if (endsUnread || state.jobs.get(jobId)?.name === null) {
    tx.append({ type: "iteration_collected", iterationId });
  } else endUnread(tx, iteration, client);
}
