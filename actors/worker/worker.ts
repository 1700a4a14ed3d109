/**
 * The worker: registers with the dispatcher, holds a task per iteration, and reports on the tasks
 * (paper section 3.1). It keeps nothing that a restart would need (section 3.4).
 */
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import {
  dispatcherError,
  type DispatcherProtocol,
  NAME_TAKEN,
  pauseWithin,
  type TaskDefinition,
} from "../dispatcher/protocol.ts";
import { dispatcherAnswers } from "../dispatcher/protocol_check.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { RequestOf } from "../runtime/protocol.ts";
import type { FencedRef } from "../runtime/ref.ts";
import { RareLog } from "../runtime/rare_log.ts";
import { Sleep, sleep } from "../runtime/timers.ts";
import { endsWithDrain, type HeldTask, statusOf } from "./held_task.ts";
import type {
  ElementSourceStats,
  ProxyProtocol,
  TaskSourceStats,
  WorkerProtocol,
} from "./protocol.ts";
import { workerAccess } from "./protocol_access.ts";
import { workerChecks } from "./protocol_check.ts";
import { SaveBeginnings } from "./tasks/begin_save.ts";
import { Listings } from "./runner/listings.ts";
import { createOrderedTask } from "./tasks/ordered_task.ts";
import { createSaveTask } from "./tasks/save_task.ts";
import {
  ACKNOWLEDGED_WITHIN_MS,
  AHEAD_BYTES_MAX,
  createTask,
  type TaskProtocol,
} from "./tasks/task.ts";
import type { WorkerOptions } from "./worker_options.ts";
import { TaskProxies } from "./task_proxies.ts";
import { definedFields } from "../../core/tree.ts";

/** How long one heartbeat may go unanswered before it is sent again, in ms. */
const HEARTBEAT_ATTEMPT_MS = 2_000;
/** After this time without an answer, in ms, the worker logs that it waits, and tries again. */
const HEARTBEAT_TIMEOUT_MS = 2 * HEARTBEAT_ATTEMPT_MS;
/** Limit of the pause after a failed heartbeat, in ms. */
const HEARTBEAT_RETRY_MS = 1_000;
/** Time limit for the request to leave, in ms. */
const LEAVE_TIMEOUT_MS = 500;
/** Errors that a retry cannot fix: another token, protocol, permission or name is needed. */
const REFUSALS: readonly LeatErrorCode[] = [
  "unauthenticated",
  "permission_denied",
  "failed_precondition",
];
/** How long a heartbeat waits for figures, in ms. After that it sends the previous ones. */
const MEASURE_TIMEOUT_MS = 100;
/** How long to wait before asking again whether all of a drained task has been read, in ms. */
const READ_RETRY_MS = 500;
/** How long to wait before trying again to place a cache or scheduler, in ms. */
const PLACE_RETRY_MS = 1_000;

export function createWorker(
  context: ActorContext<WorkerProtocol>,
  options: WorkerOptions,
): Actor<WorkerProtocol> {
  const worker = new Worker(context, options);
  const listings = new Listings(context.world, options.runners);
  const saves = new SaveBeginnings(context.world, options.runners);
  return {
    handlers: {
      listSplits: async ({ dataset, owner }, { deadlineMs }) => ({
        bounds: await listings.list(dataset, owner, deadlineMs),
      }),
      beginSave: (request, { deadlineMs }) => saves.begin(request, deadlineMs),
      wake: () => {
        worker.wake();
        return null;
      },
      nameWanted: ({ by }) => worker.nameWanted(by),
      drain: ({ timeoutMs }) => worker.drain(timeoutMs),
      leave: () => worker.leave(),
    },
    checks: workerChecks,
    access: workerAccess,
    start: () => worker.start(),
    stop: () => worker.stop(),
  };
}

/** Whether a retry cannot help. A name that is taken gets free when its worker ends. */
function isRefusal({ code, details }: LeatError): boolean {
  return REFUSALS.includes(code) && details?.["reason"] !== NAME_TAKEN;
}

class Worker {
  readonly #context: ActorContext<WorkerProtocol>;
  readonly #options: WorkerOptions;
  readonly #tasks = new Map<number, HeldTask>();
  readonly #proxies: TaskProxies;
  readonly #sleep = new Sleep();
  /** Why it waits for the dispatcher, which may last for hours. */
  readonly #waits: RareLog;
  #woken = false;
  #draining = false;
  /** Whether the dispatcher has answered the newest heartbeat. */
  #registered = false;
  /** The incarnation that had this worker's name before, once the dispatcher has sent it. */
  #follows: string | undefined;
  /** The dispatcher's timeout for a worker, in ms; undefined until the dispatcher sends it. */
  #timeoutMs: number | undefined;
  #left = false;
  #isWatching = false;
  /** The node of the last worker that claimed this name. */
  #wantedBy: string | undefined;

  constructor(context: ActorContext<WorkerProtocol>, options: WorkerOptions) {
    this.#context = context;
    this.#options = options;
    this.#proxies = new TaskProxies(context, options, this.#tasks);
    this.#waits = new RareLog(context.world);
  }

  start(): void {
    this.#context.run(() => this.#heartbeats());
  }

  /** Stops the actors that the worker placed on other nodes: they are not its children. */
  async stop(): Promise<void> {
    await Promise.all([...this.#tasks.values()].map((task) => this.#proxies.unplace(task)));
  }

  /** Drains all tasks. A heartbeat says so at once, so that replacements can be started. */
  async drain(timeoutMs: number): Promise<boolean> {
    this.#draining = true;
    this.wake();
    const drained = [...this.#tasks.values()].map((held) => this.#drainTask(held, timeoutMs));
    return (await Promise.all(drained)).every(Boolean);
  }

  async #drainTask(held: HeldTask, timeoutMs: number): Promise<boolean> {
    const untilMs = this.#context.world.nowMs() + timeoutMs;
    const { definition: { taskId } } = held;
    let isOver = false;
    const fetched = this.#context.ask(held.task, "drain", null, { timeoutMs })
      .then(() => {
        if (endsWithDrain(held)) this.#context.run(() => this.#dropDrained(held));
      })
      .finally(() => isOver = true);
    try {
      // Nobody fetches what the task of an abandoned proxy holds.
      await Promise.race([fetched, this.#abandoned(held, () => isOver)]);
    } catch {
      return false;
    }
    while (this.#tasks.get(taskId) === held && !held.failed && !await this.#isRead(held)) {
      if (this.#context.world.nowMs() >= untilMs) return false;
      await sleep(this.#context, READ_RETRY_MS);
    }
    return true;
  }

  /**
   * Drops a drained task, because its epoch must not wait for the worker's other tasks. First waits
   * for silent clients that may come back: those would take the loss of the task for its end.
   */
  async #dropDrained(held: HeldTask): Promise<void> {
    const { task, definition: { taskId } } = held;
    const isFetched = () =>
      this.#context.ask(task, "drain", null, { timeoutMs: MEASURE_TIMEOUT_MS }).catch(() => false);
    while (this.#tasks.get(taskId) === held && !(await isFetched() && await this.#isRead(held))) {
      await sleep(this.#context, READ_RETRY_MS);
    }
    await this.#endTask(taskId);
    this.wake();
  }

  /**
   * Resolves when all trainers have left the task's cache or scheduler; never for a task without one.
   * @param isOver Whether nobody waits for that any more.
   */
  async #abandoned(held: HeldTask, isOver: () => boolean): Promise<void> {
    while (!isOver() && held.source !== held.task) {
      if (await this.#askProxy(held, "haveAllLeft")) return;
      await sleep(this.#context, READ_RETRY_MS);
    }
    await new Promise(() => {});
  }

  /** Whether trainers have read all that a drained task's cache or scheduler holds. */
  async #isRead(held: HeldTask): Promise<boolean> {
    return held.source === held.task || await this.#askProxy(held, "isRead");
  }

  async #askProxy({ source }: HeldTask, question: "isRead" | "haveAllLeft"): Promise<boolean> {
    if (source === undefined) return false;
    const proxy = source as FencedRef<ProxyProtocol>;
    return await this.#context.ask(proxy, question, null, { timeoutMs: HEARTBEAT_ATTEMPT_MS })
      .catch(() => false);
  }

  wake(): void {
    // If a hint is lost, the next regular heartbeat is enough: correctness must not need hints.
    if (this.#context.world.fault("worker.miss_news")) return;
    this.#woken = true;
    this.#sleep.wake();
  }

  /** Another worker claims this name. By answering, this one keeps it. */
  nameWanted(by: string): null {
    const { name } = this.#options;
    if (this.#wantedBy !== by) {
      this.#context.world.log(
        "warn",
        `Another worker, at ${by}, wants the name "${name}" of this one, and waits until it ends. ` +
          "Give each worker a name of its own (--name)",
      );
    }
    this.#wantedBy = by;
    return null;
  }

  /** Tells the dispatcher that this worker sends no more heartbeats. */
  async leave(): Promise<null> {
    this.#draining = true;
    this.#left = true;
    this.wake();
    if (!this.#registered) return null;
    const request = { ...this.#report(), leaving: true };
    await this.#context.ask(this.#options.dispatcher, "workerHeartbeat", request, {
      timeoutMs: LEAVE_TIMEOUT_MS,
    });
    return null;
  }

  async #heartbeats(): Promise<void> {
    const { heartbeatMs = 30_000 } = this.#options;
    for (;;) {
      await this.#measure();
      if (this.#context.signal.aborted || this.#left) return;
      this.#woken = false;
      const isMissed = this.#registered && this.#context.world.fault("worker.skip_heartbeat");
      const outcome = isMissed ? "unanswered" : await this.#heartbeat();
      if (outcome === "refused") return;
      if (this.#woken || outcome === "repeat") continue;
      const delayMs = outcome === "answered"
        ? pauseWithin(heartbeatMs, this.#timeoutMs)
        : Math.min(heartbeatMs, HEARTBEAT_RETRY_MS);
      await this.#sleep.begin(this.#context, delayMs);
    }
  }

  async #heartbeat(): Promise<"answered" | "repeat" | "unanswered" | "refused"> {
    const { name, dispatcher } = this.#options;
    const { world } = this.#context;
    // They end after this heartbeat, which says how much they have produced.
    const fenced = [...this.#tasks].flatMap(([taskId, held]) => held.isFenced ? taskId : []);
    try {
      const answer = await this.#context.ask(
        dispatcher,
        "workerHeartbeat",
        this.#report(),
        { timeoutMs: HEARTBEAT_TIMEOUT_MS, attemptMs: HEARTBEAT_ATTEMPT_MS },
      );
      const news = dispatcherAnswers.workerHeartbeat(answer, dispatcher.node);
      if (news.kind === "takeover") {
        this.#unregistered();
        this.#follows = news.incarnation;
        return "repeat";
      }
      if (!this.#registered) {
        world.log("info", `Worker "${name}" works for the dispatcher at ${dispatcher.node}`);
      }
      this.#registered = true;
      if (news.lacksFigures === true) this.#forgetReported();
      this.#timeoutMs = news.timeoutMs;
      this.#watchDispatcher();
      const ended = [...news.endedTasks, ...fenced];
      await Promise.all(ended.map((taskId) => this.#endTask(taskId)));
      if (this.#draining) return "answered";
      for (const definition of news.newTasks) this.#startTask(definition);
      return news.hasMoreTasks === true ? "repeat" : "answered";
    } catch (error) {
      const failure = dispatcherError(dispatcher, error);
      if (failure.code === "cancelled") throw failure;
      this.#unregistered();
      // The dispatcher refuses a heartbeat that it gets after the request to leave.
      if (this.#left) return "unanswered";
      if (isRefusal(failure)) {
        await this.#refused(failure);
        return "refused";
      }
      this.#waits.note(
        failure.message,
        `Worker "${name}" waits for the dispatcher at ${dispatcher.node}: ${failure.message}`,
      );
      return "unanswered";
    }
  }

  /** The dispatcher may not have the newest heartbeat. */
  #unregistered(): void {
    this.#registered = false;
    this.#forgetReported();
  }

  #forgetReported(): void {
    for (const held of this.#tasks.values()) held.reported = undefined;
  }

  /** A private worker cannot be dialled: if its link ends, a heartbeat makes it reachable again. */
  #watchDispatcher(): void {
    const { isPrivate = false, dispatcher } = this.#options;
    if (!isPrivate || this.#isWatching) return;
    this.#isWatching = true;
    this.#context.watch(dispatcher, () => {
      this.#isWatching = false;
      this.wake();
    });
  }

  /** Asks tasks and their proxies for figures. A dead one keeps its last figures until removed. */
  async #measure(): Promise<void> {
    const askOptions = { timeoutMs: MEASURE_TIMEOUT_MS };
    const requests: Promise<void>[] = [];
    const keep = () => {};
    for (const held of this.#tasks.values()) {
      const { task, source = task } = held;
      const noteStats = ({ role: _, skipped: __, ...stats }: TaskSourceStats) =>
        void (held.stats = stats);
      requests.push(this.#context.ask(task, "stats", null, askOptions).then(noteStats, keep));
      if (source === task) {
        held.sharing = undefined;
        continue;
      }
      const noteProxy = (stats: ElementSourceStats) => void (held.sharing = stats.sharing);
      requests.push(this.#context.ask(source, "stats", null, askOptions).then(noteProxy, keep));
    }
    await Promise.all(requests);
    // Sends the window sizes again, because a message to a cache on another node may be lost.
    this.#proxies.divideWindows();
  }

  #report(): RequestOf<DispatcherProtocol, "workerHeartbeat"> {
    const { name, tags = [], usage, process, isPrivate } = this.#options;
    const tasks = [...this.#tasks.values()].map(statusOf);
    const figures = {
      atMs: this.#context.world.nowMs(),
      ...(usage === undefined ? {} : { process: usage() }),
      ...(this.#draining ? { draining: true } : {}),
    };
    return {
      name,
      worker: this.#context.self,
      tags,
      ...definedFields({ process, isPrivate }),
      ...(this.#follows === undefined ? {} : { follows: this.#follows }),
      tasks,
      figures,
    };
  }

  /** Another incarnation has taken this worker's name, or the worker is not admitted. */
  async #refused(why: LeatError): Promise<void> {
    const { name, dispatcher, onRefused } = this.#options;
    const error = new LeatError(
      why.code,
      `The dispatcher at ${dispatcher.node} refuses worker "${name}": ${why.message}`,
      { cause: why },
    );
    this.#context.world.log("error", error.message);
    await Promise.all([...this.#tasks.keys()].map((taskId) => this.#endTask(taskId)));
    onRefused?.(error);
  }

  #startTask(definition: TaskDefinition): void {
    const { taskId } = definition;
    if (this.#tasks.has(taskId)) return;
    const { dispatcher, runners, dispatcherTimeoutMs = 3_600_000 } = this.#options;
    const { aheadBytesMax = AHEAD_BYTES_MAX, acknowledgedWithinMs = ACKNOWLEDGED_WITHIN_MS } =
      this.#options;
    const create = taskMakerFor(definition);
    const key = `${taskId}-${this.#context.random.hex64()}`;
    const task = this.#context.spawn<TaskProtocol>({
      name: `task-${key}`,
      kind: "task",
      restart: "temporary",
      create: (context) =>
        create(context, {
          definition,
          dispatcher,
          runners,
          dispatcherTimeoutMs,
          aheadBytesMax,
          acknowledgedWithinMs,
          onCompleted: () => this.#completed(held),
          onFailed: () => {
            held.isUnreadable = true;
            this.wake();
          },
          onFenced: () => {
            held.isFenced = true;
            this.wake();
          },
        }),
    });
    const held: HeldTask = {
      definition,
      key,
      task,
      source: undefined,
      completed: false,
      failed: false,
      isFenced: false,
      isUnreadable: false,
      stats: undefined,
      sharing: undefined,
      reported: undefined,
      placed: undefined,
    };
    this.#tasks.set(taskId, held);
    this.#proxies.divideWindows();
    this.#context.watch(task, () => this.#failed(held));
    this.#context.run(async () => {
      while (this.#tasks.get(taskId) === held && held.source === undefined) {
        await this.#open(held);
      }
      if (this.#tasks.get(taskId) !== held) await this.#proxies.unplace(held);
    });
  }

  /** Opens a task to clients. If its cache or scheduler cannot be placed, the caller tries again. */
  async #open(held: HeldTask): Promise<void> {
    try {
      held.source = await this.#proxies.sourceFor(held);
      // Its window may have an outdated size: tasks may have come or gone in the meantime.
      if (held.placed !== undefined) this.#proxies.divideWindows();
      if (held.source !== held.task) this.#context.watch(held.source, () => this.#failed(held));
      this.wake();
    } catch (error) {
      const { code, message } = LeatError.from(error);
      if (code === "cancelled") throw error;
      const task = `task ${held.definition.taskId}`;
      this.#context.world.log("error", `Clients cannot read ${task} yet: ${message}`);
      await sleep(this.#context, PLACE_RETRY_MS);
    }
  }

  /**
   * If a task, its cache or its scheduler dies, the position in the data is lost, and a restarted actor
   * would not know its splits. So the dispatcher ends the task and assigns another.
   */
  #failed(held: HeldTask): void {
    if (held.failed || this.#tasks.get(held.definition.taskId) !== held) return;
    held.failed = true;
    this.wake();
  }

  #completed(held: HeldTask): void {
    if (held.completed) return;
    held.completed = true;
    this.wake();
  }

  async #endTask(taskId: number): Promise<void> {
    const held = this.#tasks.get(taskId);
    if (held === undefined) return;
    this.#tasks.delete(taskId);
    this.#proxies.divideWindows();
    await Promise.all([
      this.#context.stopChild(`cache-${held.key}`),
      this.#context.stopChild(`reads-${held.key}`),
      this.#proxies.unplace(held),
    ]);
    await this.#context.stopChild(`task-${held.key}`);
  }
}

function taskMakerFor({ parameters: { processingMode, save } }: TaskDefinition) {
  if (save !== undefined) return createSaveTask;
  return processingMode === ShardingPolicy.DETERMINISTIC ? createOrderedTask : createTask;
}
