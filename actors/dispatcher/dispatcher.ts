/**
 * The dispatcher (paper section 3.1): knows the datasets, jobs, workers and clients, gives workers
 * tasks, tells clients what to read, and hands out splits. It touches no data.
 *
 * Every request is decided in a turn (`turns.ts`), which keeps the order of its work; what follows from
 * a turn's changes is in `consequences.ts`. What workers and clients say of how they are doing is not
 * journaled, nor who was heard of when.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { ClientProtocol } from "../client/protocol.ts";
import { RefusalLog } from "../runtime/access.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { AnswerOf, Delivery, RequestOf } from "../runtime/protocol.ts";
import type { FencedRef } from "../runtime/ref.ts";
import { ClientHints } from "./members/client_hints.ts";
import { ClientLinks } from "./liveness/client_links.ts";
import { clientOf, endClient, newsFor, newsOfEnd, releaseClient } from "./members/clients.ts";
import { type DispatcherConfig, type Settings, settingsOf } from "./config.ts";
import { Consequences, type Parts } from "./consequences.ts";
import { Consumers } from "./modes/consumers.ts";
import { datasetFor, registerDataset } from "./jobs/datasets.ts";
import { describeState, type SoftState } from "./report/describe.ts";
import { Figures } from "./report/figures.ts";
import { openIteration } from "./jobs/opening.ts";
import { checkQuotas } from "./jobs/quotas.ts";
import { modeFor } from "./modes/modes.ts";
import { NameClaims } from "./members/name_claims.ts";
import type { DispatcherInfo, DispatcherProtocol } from "./protocol.ts";
import { dispatcherAccess } from "./protocol_access.ts";
import { dispatcherChecks } from "./protocol_check.ts";
import { WorkerReach } from "./liveness/reach.ts";
import { RequestRates } from "./jobs/request_rates.ts";
import { runnerDied } from "./jobs/runner_deaths.ts";
import { Scaling } from "./scaling/scaling.ts";
import { Silence } from "./liveness/silence.ts";
import { forgeryOf, taskForgeryOf } from "./members/speaking.ts";
import type { DispatcherState } from "./state/state.ts";
import { TaskLists } from "./jobs/task_lists.ts";
import { TaskRequests } from "./jobs/task_requests.ts";
import type { Turn } from "./turn.ts";
import { Turns } from "./turns.ts";
import { holderOfName, workerHeartbeat } from "./members/workers.ts";

/** Tells programs of one protocol from those of another. */
const VERSION = "0.1";
/** Whoever looks finds figures no older than this, in ms, or asks for new ones. */
const FIGURES_FRESH_MS = 1_000;
/** Workers that are asked for new figures at a time, those with the oldest first. */
const FIGURES_ASKED_MAX = 100;

type Request<M extends keyof DispatcherProtocol> = RequestOf<DispatcherProtocol, M>;
/** What a turn comes to: at once, or when it is durable. */
type Answer<M extends keyof DispatcherProtocol> =
  | AnswerOf<DispatcherProtocol, M>
  | Promise<AnswerOf<DispatcherProtocol, M>>;

/**
 * Makes the dispatcher.
 *
 * @example
 * ```ts ignore
 * system.spawn<DispatcherProtocol>({ name: "dispatcher", create: (context) => createDispatcher(context) });
 * ```
 */
export function createDispatcher(
  context: ActorContext<DispatcherProtocol>,
  config: DispatcherConfig = {},
): Actor<DispatcherProtocol> {
  const settings = settingsOf(config);
  let opening: Promise<Turns> | undefined;
  // There is no request before it is started.
  let dispatcher!: Dispatcher;
  return {
    handlers: {
      hello: (_, by) => dispatcher.answer(by, () => dispatcher.hello()),
      registerDataset: (request, by) =>
        dispatcher.answer(by, () => dispatcher.registerDataset(request, by)),
      getDataset: (request, by) => dispatcher.answer(by, () => dispatcher.getDataset(request, by)),
      openIteration: (request, by) =>
        dispatcher.answer(by, () => dispatcher.openIteration(request, by)),
      clientHeartbeat: (request, by) =>
        dispatcher.answer(by, () => dispatcher.clientHeartbeat(request, by)),
      releaseClient: (request, by) =>
        dispatcher.answer(by, () => dispatcher.releaseClient(request)),
      workerHeartbeat: (request, delivery) => dispatcher.workerHeartbeat(request, delivery),
      getSplit: (request, delivery) => dispatcher.getSplit(request, delivery),
      getSaveWork: (request, delivery) => dispatcher.getSaveWork(request, delivery),
      runnerDied: (request, delivery) => dispatcher.runnerDied(request, delivery),
      describe: (request, by) =>
        dispatcher.answer(by, () => dispatcher.describe(request?.refresh === true)),
    },
    checks: dispatcherChecks,
    access: dispatcherAccess,
    start: async () => {
      opening = Turns.open(context, settings);
      dispatcher = new Dispatcher(context, settings, await opening);
      await dispatcher.begin();
    },
    stop: async () => {
      dispatcher?.stop();
      const turns = await opening?.catch(() => undefined);
      await turns?.close();
    },
  };
}

class Dispatcher {
  readonly #context: ActorContext<DispatcherProtocol>;
  readonly #settings: Settings;
  readonly #turns: Turns;
  readonly #parts: Parts;
  readonly #consequences: Consequences;
  readonly #scaling: Scaling;
  readonly #names: NameClaims;
  readonly #refusals: RefusalLog;
  readonly #rates: RequestRates;

  constructor(context: ActorContext<DispatcherProtocol>, settings: Settings, turns: Turns) {
    this.#context = context;
    this.#settings = settings;
    this.#turns = turns;
    this.#scaling = new Scaling(settings.scaling);
    this.#names = new NameClaims(context);
    this.#refusals = new RefusalLog(context.world);
    const { requestsPerSecondMax } = settings.quotas;
    this.#rates = new RequestRates(requestsPerSecondMax, () => context.world.nowMs());
    const consumers = new Consumers();
    const clientLinks = new ClientLinks(
      context,
      (clientId) => turns.runUnasked((turn) => endClient(turn, clientId, "gone", consumers)),
    );
    const taskRequests = new TaskRequests(context, settings, turns);
    this.#parts = {
      context,
      turns,
      consumers,
      clientLinks,
      taskRequests,
      taskLists: new TaskLists(context.self.incarnation),
      figures: new Figures(settings.scaling.measureMs),
      reach: new WorkerReach(context, settings.dialWorker),
      hints: new ClientHints(context, turns),
      silence: new Silence({ context, settings, turns, clientLinks, consumers, taskRequests }),
    };
    this.#consequences = new Consequences(this.#parts, settings.workers);
    turns.follow(this.#consequences);
  }

  async begin(): Promise<void> {
    const { silence, taskRequests } = this.#parts;
    const { workers } = this.#turns.state;
    this.#settings.onWorkers?.((node) => workers.values().some(({ ref }) => ref.node === node));
    await this.#turns.run((turn) => {
      const { state, random, wallMs } = turn;
      if (state.clusterId === "") {
        turn.commit({ type: "cluster_created", clusterId: random.hex64() });
      }
      const { incarnation } = this.#context.self;
      turn.commit({ type: "dispatcher_started", incarnation, wallMs });
      silence.begin(turn);
      for (const iterationId of state.iterations.keys()) taskRequests.list(iterationId);
    });
    silence.watch();
    this.#scaleLater();
  }

  /** Asks that are still open are refused, so that they are asked again of the next life. */
  stop(): void {
    this.#parts.taskRequests.refuse(new LeatError("unavailable", "The dispatcher is stopping"));
  }

  /**
   * Answers a request, or refuses it and logs the name of the sender.
   *
   * @throws LeatError `resource_exhausted` for one who asks too often.
   */
  answer<A>(by: Delivery, answer: () => A | Promise<A>): A | Promise<A> {
    this.#rates.take(by);
    const failed = (error: unknown): never => {
      const isRefusal = error instanceof LeatError && error.code === "permission_denied";
      if (isRefusal) this.#refusals.note(by.sender, error);
      throw error;
    };
    try {
      const answered = answer();
      return answered instanceof Promise ? answered.catch(failed) : answered;
    } catch (error) {
      return failed(error);
    }
  }

  /** Waits for no disk, so that health checks pass while it is full: what it says has been durable from the start. */
  hello(): Answer<"hello"> {
    return this.#turns.look((state): DispatcherInfo => ({
      version: VERSION,
      clusterId: state.clusterId,
      life: state.lives,
    }));
  }

  registerDataset(
    request: Request<"registerDataset">,
    { sender }: Delivery,
  ): Answer<"registerDataset"> {
    return this.#turns.run((turn) => {
      const answer = registerDataset(turn, request, sender, this.#settings.quotas);
      this.#parts.silence.datasetRegistered(answer.datasetId);
      return answer;
    });
  }

  getDataset({ datasetId }: Request<"getDataset">, { sender }: Delivery): Answer<"getDataset"> {
    return this.#turns.run(({ state }) => datasetFor(state, datasetId, sender));
  }

  openIteration(
    asked: Request<"openIteration">,
    { source, sender }: Delivery,
  ): Answer<"openIteration"> {
    const { consumers, clientLinks } = this.#parts;
    return this.#turns.run((turn) => {
      const request = modeFor(asked.parameters).named(asked);
      checkQuotas(turn.state, request, sender.name, this.#settings.quotas);
      const answer = openIteration(turn, request, sender, {
        placeOf: (clientId) => consumers.placeOf(clientId),
        isUnreadable: (iterationId) => this.#isUnreadable(turn.state, iterationId),
      });
      // One that is stopped while it joins may never say a word as a client, nor good-bye.
      clientLinks.heard(answer.clientId, source);
      return answer;
    });
  }

  clientHeartbeat(
    request: Request<"clientHeartbeat">,
    { source }: Delivery,
  ): Answer<"clientHeartbeat"> {
    const { consumers, taskLists, figures, clientLinks, hints, silence } = this.#parts;
    const settings = this.#settings;
    return this.#turns.run((turn) => {
      const { state } = turn;
      const end = newsOfEnd(state, request);
      if (end !== undefined) return end;
      const [client, iteration] = clientOf(state, request);
      const { clientId, iterationId } = client;
      silence.clientHeard(clientId);
      hints.heard(clientId, source as FencedRef<ClientProtocol>);
      clientLinks.heard(clientId, source);
      state.modeOf(iteration).heard(turn, client, request, { ...settings, consumers });
      figures.clientHeard(state, clientId, request.figures, turn.nowMs);
      const changed = taskLists.changedSince(iterationId, request.taskList);
      const { windowSplits, ...news } = newsFor(state, client, changed, request, settings);
      // The order of fields is part of the bytes that simulated runs are compared by.
      return {
        ...news,
        taskList: taskLists.nameOf(iterationId),
        ...(windowSplits === undefined ? {} : { windowSplits }),
        timeoutMs: settings.clientGraceMs,
      };
    });
  }

  releaseClient(request: Request<"releaseClient">): Answer<"releaseClient"> {
    return this.#turns.run((turn) => releaseClient(turn, request, this.#parts.consumers));
  }

  /** Who asks for the name of a worker that lives has to wait. */
  workerHeartbeat(
    request: Request<"workerHeartbeat">,
    delivery: Delivery,
  ): Answer<"workerHeartbeat"> {
    this.#expect(delivery, (state) => forgeryOf(state, request, delivery));
    const holder = this.#turns.look((state) => holderOfName(state, request));
    if (holder === undefined) return this.#workerHeard(request, delivery);
    return this.#names.expectGone(request.name, holder, request.worker)
      .then(() => this.#workerHeard(request, delivery));
  }

  #workerHeard(
    request: Request<"workerHeartbeat">,
    delivery: Delivery,
  ): Answer<"workerHeartbeat"> {
    const { figures, reach, silence } = this.#parts;
    return this.#turns.run((turn) => {
      const answer = workerHeartbeat(turn, request, delivery);
      if (request.leaving !== true && answer.follows === undefined) {
        silence.workerHeard(request.name);
        if (request.isPrivate !== true) reach.heard(request.name, request.worker);
        figures.workerHeard(turn.state, request, turn.nowMs);
      }
      this.#consequences.answered(request.name);
      return { ...answer, timeoutMs: this.#settings.workerTimeoutMs };
    });
  }

  getSplit(request: Request<"getSplit">, delivery: Delivery): Answer<"getSplit"> {
    this.#expectOwnTask(request, delivery);
    return this.#parts.taskRequests.getSplit(request, delivery.deadlineMs);
  }

  getSaveWork(request: Request<"getSaveWork">, delivery: Delivery): Answer<"getSaveWork"> {
    this.#expectOwnTask(request, delivery);
    return this.#parts.taskRequests.getSaveWork(request, delivery.deadlineMs);
  }

  runnerDied(request: Request<"runnerDied">, delivery: Delivery): Answer<"runnerDied"> {
    this.#expectOwnTask(request, delivery);
    return this.#turns.run((turn) => runnerDied(turn, request, this.#settings.runnerDeathsMax));
  }

  #expectOwnTask({ taskId }: { readonly taskId: number }, delivery: Delivery): void {
    this.#expect(delivery, (state) => taskForgeryOf(state, taskId, delivery));
  }

  /** Throws why somebody is refused, and has it logged. */
  #expect(
    { sender }: Delivery,
    refusalOf: (state: DispatcherState) => LeatError | undefined,
  ): void {
    const refusal = this.#turns.look(refusalOf);
    if (refusal === undefined) return;
    this.#refusals.note(sender, refusal);
    throw refusal;
  }

  /** Whoever looks while the journal waits for room has to see that it does. */
  describe(refresh: boolean): Answer<"describe"> {
    const { stall } = this.#turns;
    const describe = (turn: Turn) => {
      if (refresh && stall === undefined) this.#refreshFigures(turn.nowMs);
      const soft = this.#softState(turn);
      const described = describeState(turn.state, soft, this.#scaling.describe(turn.state, soft));
      if (stall === undefined) return described;
      return {
        ...described,
        journal: { waits: stall.message, forMs: turn.nowMs - stall.sinceMs },
      };
    };
    return stall === undefined ? this.#turns.run(describe) : this.#turns.lookAround(describe);
  }

  /** Whether one of its tasks cannot read on, as far as its worker has told. */
  #isUnreadable(state: DispatcherState, iterationId: number): boolean {
    const { figures } = this.#parts;
    return [...state.tasksOfIteration(iterationId)].some(({ worker, taskId }) =>
      figures.failureOf(worker, taskId) !== undefined
    );
  }

  #softState({ nowMs, wallMs }: Turn): SoftState {
    const { consumers, figures, reach, silence } = this.#parts;
    return {
      figures,
      nowMs,
      wallOffsetMs: wallMs - nowMs,
      windowSplits: this.#settings.windowSplits,
      heardMs: (worker) => silence.workersHeardMs.get(worker) ?? nowMs,
      placeOf: (clientId) => consumers.placeOf(clientId),
      unreachable: (worker) => reach.unreachable(worker),
    };
  }

  /** Workers that have said nothing of themselves for a while send a heartbeat when they are woken. */
  #refreshFigures(nowMs: number): void {
    const { figures, silence } = this.#parts;
    const age = (name: string) => figures.ageMs(name, nowMs);
    const freshMs = Math.min(FIGURES_FRESH_MS, this.#scaling.intervalMs / 2);
    const stale = [...silence.workersHeardMs.keys()].filter((name) => age(name) > freshMs);
    stale.sort((a, b) => age(b) - age(a));
    for (const name of stale.slice(0, FIGURES_ASKED_MAX)) this.#consequences.wake(name);
  }

  /** It looks also while nobody asks: what is wanted rests on what was. */
  #scaleLater(): void {
    this.#context.timer(this.#scaling.intervalMs, () => {
      this.#turns.runUnasked((turn) => {
        const isOfInterest = this.#scaling.observe(turn.state, this.#softState(turn));
        if (isOfInterest) this.#refreshFigures(turn.nowMs);
      });
      this.#scaleLater();
    });
  }
}
