/**
 * The dispatcher (paper section 3.1) tracks datasets, jobs, workers and clients, and assigns tasks
 * and splits. It never touches data. It handles each request in one transaction
 * (`transactions.ts`); `effects.ts` does what follows from the changes, such as messages to
 * clients. Figures and heartbeat times are not journaled.
 */
import { LeatError } from "../../core/error.ts";
import type { ReadingTask } from "../../data/service/reading_task.ts";
import type { ClientProtocol } from "../client/protocol.ts";
import { RefusalLog } from "../runtime/access.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import { bytesOfBody } from "../runtime/body.ts";
import type { AnswerOf, Delivery, RequestOf } from "../runtime/protocol.ts";
import type { FencedRef } from "../runtime/ref.ts";
import { ClientHints } from "./members/client_hints.ts";
import { MemberLinks } from "./liveness/member_links.ts";
import { clientOf, endClient, newsFor, newsOfEnd, releaseClient } from "./members/clients.ts";
import { type DispatcherConfig, type Settings, settingsOf } from "./config.ts";
import { Effects, type Parts } from "./effects.ts";
import { Consumers } from "./modes/consumers.ts";
import { datasetFor, registerDataset } from "./jobs/datasets.ts";
import { describeState, type SoftState } from "./report/describe.ts";
import { Figures } from "./report/figures.ts";
import { endTasksOf } from "./jobs/iterations.ts";
import { openIteration } from "./jobs/join_iteration.ts";
import { readerOf, readerOfClient, rightsOf } from "./jobs/owners.ts";
import { checkQuotas, unreadSurplus } from "./jobs/quotas.ts";
import { modeFor } from "./modes/modes.ts";
import { NameClaims } from "./members/name_claims.ts";
import type { DispatcherInfo, DispatcherProtocol } from "./protocol.ts";
import { dispatcherAccess } from "./protocol_access.ts";
import { dispatcherChecks } from "./protocol_check.ts";
import { ReachabilityProbe } from "./liveness/reachability_probe.ts";
import { RequestRates } from "./jobs/request_rates.ts";
import { runnerDied } from "./jobs/runner_deaths.ts";
import { Scaling } from "./scaling/scaling.ts";
import { Liveness } from "./liveness/liveness.ts";
import { addressFaultOf, forgeryOf, taskForgeryOf } from "./members/speaking.ts";
import type { DispatcherState } from "./state/state.ts";
import { TaskLists } from "./jobs/task_lists.ts";
import { TaskRequests } from "./jobs/task_requests.ts";
import type { Transaction } from "./transaction.ts";
import { Transactions } from "./transactions.ts";
import { holderOfName, workerHeartbeat } from "./members/workers.ts";

const VERSION = "0.1";
/** Roughly how many bytes a description takes for each job, client or worker. */
const DESCRIBED_BYTES = 1_024;
/** `describe` with `refresh` asks workers for new figures if theirs are older than this, in ms. */
const FIGURES_FRESH_MS = 1_000;
/** How many workers are asked for new figures at a time: those with the oldest. */
const FIGURES_ASKED_MAX = 100;

type Request<M extends keyof DispatcherProtocol> = RequestOf<DispatcherProtocol, M>;
/** The answer to a request: immediate, or promised for when all records so far are durable. */
type Answer<M extends keyof DispatcherProtocol> =
  | AnswerOf<DispatcherProtocol, M>
  | Promise<AnswerOf<DispatcherProtocol, M>>;

export function createDispatcher(
  context: ActorContext<DispatcherProtocol>,
  config: DispatcherConfig = {},
): Actor<DispatcherProtocol> {
  const settings = settingsOf(config);
  let opening: Promise<Transactions> | undefined;
  // No request arrives before `start`.
  let dispatcher!: Dispatcher;
  return {
    handlers: {
      hello: (_, by) => dispatcher.answer(by, () => dispatcher.hello()),
      registerDataset: (request, delivery) => {
        const by = dispatcher.forReader(request, delivery);
        return dispatcher.answer(by, () => dispatcher.registerDataset(request, by));
      },
      getDataset: (request, delivery) => {
        const by = dispatcher.forReader(request, delivery);
        return dispatcher.answer(by, () => dispatcher.getDataset(request, by));
      },
      openIteration: (request, delivery) => {
        const by = dispatcher.forReader(request, delivery);
        return dispatcher.answer(by, () => dispatcher.openIteration(request, by));
      },
      clientHeartbeat: (request, delivery) => {
        const by = dispatcher.forClient(request, delivery);
        return dispatcher.answer(by, () => dispatcher.clientHeartbeat(request, by));
      },
      releaseClient: (request, delivery) => {
        const by = dispatcher.forClient(request, delivery);
        return dispatcher.answer(by, () => dispatcher.releaseClient(request, by));
      },
      workerHeartbeat: (request, delivery) => dispatcher.workerHeartbeat(request, delivery),
      getSplit: (request, delivery) => dispatcher.getSplit(request, delivery),
      getSaveWork: (request, delivery) => dispatcher.getSaveWork(request, delivery),
      runnerDied: (request, delivery) => dispatcher.runnerDied(request, delivery),
      describe: (request, by) =>
        dispatcher.answer(by, () => dispatcher.describe(request?.refresh === true, by)),
    },
    checks: dispatcherChecks,
    access: dispatcherAccess,
    start: async () => {
      opening = Transactions.open(context, settings);
      dispatcher = new Dispatcher(context, settings, await opening);
      await dispatcher.begin();
    },
    stop: async () => {
      dispatcher?.stop();
      const transactions = await opening?.catch(() => undefined);
      await transactions?.close();
    },
  };
}

class Dispatcher {
  readonly #context: ActorContext<DispatcherProtocol>;
  readonly #settings: Settings;
  readonly #transactions: Transactions;
  readonly #parts: Parts;
  readonly #effects: Effects;
  readonly #scaling: Scaling;
  readonly #names: NameClaims;
  readonly #refusals: RefusalLog;
  readonly #rates: RequestRates;

  constructor(
    context: ActorContext<DispatcherProtocol>,
    settings: Settings,
    transactions: Transactions,
  ) {
    this.#context = context;
    this.#settings = settings;
    this.#transactions = transactions;
    this.#scaling = new Scaling(settings.scaling);
    this.#names = new NameClaims(context);
    this.#refusals = new RefusalLog(context.world);
    const { requestsPerSecondMax } = settings.quotas;
    this.#rates = new RequestRates(requestsPerSecondMax, () => context.world.nowMs());
    const consumers = new Consumers();
    const clientLinks = new MemberLinks<number>(
      context,
      (clientId) =>
        transactions.runUnrequested((tx) => endClient(tx, clientId, "ended", consumers)),
    );
    const workerLinks: MemberLinks<string> = new MemberLinks<string>(
      context,
      // A worker that restarts in its process has the grace, too: then its work is done again.
      (name) => workerLinks.closedAtMs.set(name, context.world.nowMs()),
    );
    const taskRequests = new TaskRequests(context, settings, transactions);
    this.#parts = {
      context,
      transactions,
      consumers,
      clientLinks,
      workerLinks,
      taskRequests,
      taskLists: new TaskLists(context.self.incarnation),
      figures: new Figures(settings.scaling.measureMs),
      reachability: new ReachabilityProbe(context, settings.dialWorker),
      hints: new ClientHints(context, transactions),
      liveness: new Liveness({
        context,
        settings,
        transactions,
        clientLinks,
        workerLinks,
        consumers,
        taskRequests,
      }),
    };
    this.#effects = new Effects(this.#parts, settings.workers);
    transactions.setEffects(this.#effects);
  }

  async begin(): Promise<void> {
    const { liveness, taskRequests } = this.#parts;
    const { workers } = this.#transactions.state;
    this.#settings.onWorkers?.({
      isAddress: (node) => workers.values().some(({ ref }) => ref.node === node),
      ownerOf: (node) =>
        workers.values().find(({ ref, alive }) => alive && ref.node === node)?.owner ?? undefined,
    });
    await this.#transactions.run((tx) => {
      const { state, random, wallMs } = tx;
      if (state.clusterId === "") {
        tx.append({ type: "cluster_created", clusterId: random.hex64() });
      }
      const { incarnation } = this.#context.self;
      tx.append({ type: "dispatcher_started", incarnation, wallMs });
      liveness.begin(tx);
      for (const iterationId of state.iterations.keys()) taskRequests.list(iterationId);
    });
    for (const { ref, alive } of workers.values()) if (alive) this.#context.tell(ref, "wake", null);
    liveness.watch();
    this.#scaleLater();
  }

  /** Refuses open requests, so that their senders repeat them to the next dispatcher. */
  stop(): void {
    this.#parts.taskRequests.rejectAll(new LeatError("unavailable", "The dispatcher is stopping"));
  }

  /** The delivery as if it came from the identity that it counts for: see `readerOf`. */
  forReader({ forTask }: { readonly forTask?: ReadingTask }, by: Delivery): Delivery {
    if (forTask === undefined) return by;
    const sender = this.#transactions.look((state) => readerOf(state, forTask, by.sender));
    return sender === by.sender ? by : { ...by, sender };
  }

  /** As `forReader`, for a request about a client: see `readerOfClient`. */
  forClient(request: Request<"releaseClient">, by: Delivery): Delivery {
    const sender = this.#transactions.look((state) => readerOfClient(state, request, by.sender));
    return sender === by.sender ? by : { ...by, sender };
  }

  /**
   * Answers a request. A refusal is logged with the sender's name.
   * @throws LeatError `resource_exhausted` for a sender above its request rate.
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

  /**
   * Answers at once, so that health checks pass while the disk is full. All it reads is durable.
   */
  hello(): Answer<"hello"> {
    return this.#transactions.look((state): DispatcherInfo => ({
      version: VERSION,
      clusterId: state.clusterId,
      life: state.lives,
    }));
  }

  registerDataset(
    request: Request<"registerDataset">,
    { sender }: Delivery,
  ): Answer<"registerDataset"> {
    return this.#transactions.run((tx) => {
      const rights = rightsOf(tx.state, request, sender);
      const answer = registerDataset(tx, request, rights, this.#settings.quotas);
      this.#parts.liveness.datasetRegistered(answer.datasetId);
      return answer;
    });
  }

  getDataset(request: Request<"getDataset">, by: Delivery): Answer<"getDataset"> {
    return this.#transactions.run(({ state }) => {
      const dataset = datasetFor(state, request.datasetId, rightsOf(state, request, by.sender));
      this.#rates.addAnswer(by, dataset.graph.byteLength);
      return dataset;
    });
  }

  openIteration(
    asked: Request<"openIteration">,
    by: Delivery,
  ): Answer<"openIteration"> {
    const { source, sender } = by;
    const { consumers, clientLinks } = this.#parts;
    const { quotas } = this.#settings;
    this.#rates.addRequest(by, bytesOfBody(asked));
    return this.#transactions.run((tx) => {
      const request = modeFor(asked.parameters).withName(asked);
      checkQuotas(tx.state, request, sender, quotas);
      const answer = openIteration(tx, request, rightsOf(tx.state, request, sender), {
        positionOf: (clientId) => consumers.positionOf(clientId),
        isUnreadable: (iterationId) => this.#isUnreadable(tx.state, iterationId),
        isClosed: (clientId) => clientLinks.closedAtMs.has(clientId),
      });
      for (const iteration of unreadSurplus(tx.state, sender, quotas)) {
        endTasksOf(tx, iteration, "unread");
      }
      // Watched from now on: a client that is killed while it joins never sends a heartbeat.
      clientLinks.watch(answer.clientId, source);
      return answer;
    });
  }

  clientHeartbeat(
    request: Request<"clientHeartbeat">,
    by: Delivery,
  ): Answer<"clientHeartbeat"> {
    const { source } = by;
    const { consumers, taskLists, figures, clientLinks, hints, liveness } = this.#parts;
    this.#rates.addRequest(by, bytesOfBody(request));
    const settings = this.#settings;
    return this.#transactions.run((tx) => {
      const { state } = tx;
      const end = newsOfEnd(state, request);
      if (end !== undefined) return end;
      const [client, iteration] = clientOf(state, request);
      const { clientId, iterationId } = client;
      liveness.clientHeard(clientId);
      hints.noteClient(clientId, source as FencedRef<ClientProtocol>);
      clientLinks.watch(clientId, source);
      state.modeOf(iteration).handleReport(tx, client, request.report, { ...settings, consumers });
      figures.clientHeard(state, clientId, request.figures, tx.nowMs);
      const changed = taskLists.changedSince(iterationId, request.taskList);
      return {
        ...newsFor(state, client, changed, request.report, {
          windowSplits: settings.windowSplits,
          isDraining: (worker) => figures.isDraining(worker),
        }),
        taskList: taskLists.nameOf(iterationId),
        timeoutMs: settings.clientGraceMs,
      };
    });
  }

  releaseClient(request: Request<"releaseClient">, by: Delivery): Answer<"releaseClient"> {
    this.#rates.addRequest(by, bytesOfBody(request));
    return this.#transactions.run((tx) => releaseClient(tx, request, this.#parts));
  }

  /**
   * A heartbeat that claims the name of a live worker waits until that worker is gone, or fails.
   */
  workerHeartbeat(
    request: Request<"workerHeartbeat">,
    delivery: Delivery,
  ): Answer<"workerHeartbeat"> {
    const { isNodeAddress } = this.#settings;
    this.#expect(
      delivery,
      (state) => forgeryOf(state, request, delivery) ?? addressFaultOf(request, isNodeAddress),
    );
    const holder = this.#transactions.look((state) => holderOfName(state, request));
    if (holder === undefined) return this.#workerHeard(request, delivery);
    return this.#names.expectGone(request.name, holder, request.worker)
      .then(() => this.#workerHeard(request, delivery));
  }

  #workerHeard(
    request: Request<"workerHeartbeat">,
    delivery: Delivery,
  ): Answer<"workerHeartbeat"> {
    const { figures, reachability, liveness, workerLinks } = this.#parts;
    const { workerTimeoutMs, workerGraceMs } = this.#settings;
    return this.#transactions.run((tx) => {
      const answer = workerHeartbeat(tx, request, delivery);
      const isRegistered = answer.kind === "work";
      if (isRegistered && request.leaving !== true) {
        liveness.workerHeard(request.name);
        if (workerGraceMs < workerTimeoutMs) workerLinks.watch(request.name, request.worker);
        if (request.isPrivate !== true) reachability.check(request.name, request.worker);
        figures.workerHeard(tx.state, request, tx.nowMs);
      }
      this.#effects.answered(request.name);
      if (!isRegistered) return answer;
      return {
        ...answer,
        timeoutMs: workerTimeoutMs,
        ...(figures.lacksFiguresOf(request) ? { lacksFigures: true } : {}),
      };
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
    return this.#transactions.run((tx) => runnerDied(tx, request, this.#settings.runnerDeathsMax));
  }

  #expectOwnTask({ taskId }: { readonly taskId: number }, delivery: Delivery): void {
    this.#expect(delivery, (state) => taskForgeryOf(state, taskId, delivery));
  }

  /** Logs and throws the refusal, if there is one. */
  #expect(
    { sender }: Delivery,
    refusalOf: (state: DispatcherState) => LeatError | undefined,
  ): void {
    const refusal = this.#transactions.look(refusalOf);
    if (refusal === undefined) return;
    this.#refusals.note(sender, refusal);
    throw refusal;
  }

  /** While the journal waits for disk space, this answers at once, so that people see the stall. */
  describe(refresh: boolean, by: Delivery): Answer<"describe"> {
    const { stall } = this.#transactions;
    const describe = (tx: Transaction) => {
      if (refresh) this.#refreshFigures(tx.nowMs);
      const { jobs, clients, workers } = tx.state;
      const entries = jobs.size + clients.size + workers.size;
      if (by.sender.role !== "admin") this.#rates.addAnswer(by, entries * DESCRIBED_BYTES);
      const soft = this.#softState(tx);
      const described = describeState(tx.state, soft, this.#scaling.describe(tx.state, soft));
      if (stall === undefined) return described;
      return {
        ...described,
        journal: { waits: stall.message, forMs: tx.nowMs - stall.sinceMs },
      };
    };
    return stall === undefined
      ? this.#transactions.run(describe)
      : this.#transactions.lookAround(describe);
  }

  /** Whether a worker has reported that its task of the iteration cannot continue. */
  #isUnreadable(state: DispatcherState, iterationId: number): boolean {
    const { figures } = this.#parts;
    return [...state.tasksOfIteration(iterationId)].some(({ worker, taskId }) =>
      figures.failureOf(worker, taskId) !== undefined
    );
  }

  #softState({ nowMs, wallMs }: Transaction): SoftState {
    const { consumers, figures, reachability, liveness } = this.#parts;
    const { staleMs } = this.#scaling;
    const journalWaits = this.#transactions.stall !== undefined;
    return {
      // While the journal waits, heartbeats have no answer, and new ones may not come.
      silentMs: (worker) => journalWaits ? undefined : figures.silentMs(worker, nowMs, staleMs),
      clientSilentMs: (clientId) =>
        journalWaits ? undefined : figures.clientSilentMs(clientId, nowMs, staleMs),
      journalWaits,
      figures,
      nowMs,
      wallOffsetMs: wallMs - nowMs,
      windowSplits: this.#settings.windowSplits,
      heardMs: (worker) => liveness.workersHeardMs.get(worker),
      positionOf: (clientId) => consumers.positionOf(clientId),
      unreachable: (worker) => reachability.unreachable(worker),
    };
  }

  /**
   * Wakes workers with old figures, so that they send a heartbeat. While the journal waits for disk
   * space, that would only wait, too.
   */
  #refreshFigures(nowMs: number): void {
    if (this.#transactions.stall !== undefined) return;
    const { figures, liveness } = this.#parts;
    const age = (name: string) => figures.ageMs(name, nowMs);
    const freshMs = Math.min(FIGURES_FRESH_MS, this.#scaling.intervalMs / 2);
    const stale = [...liveness.workersHeardMs.keys()].filter((name) => age(name) > freshMs);
    stale.sort((a, b) => age(b) - age(a));
    for (const name of stale.slice(0, FIGURES_ASKED_MAX)) {
      figures.workerAsked(name, nowMs);
      this.#effects.wake(name);
    }
  }

  /**
   * Observes at intervals, even if nobody asks: scaling decisions depend on earlier observations.
   */
  #scaleLater(): void {
    this.#context.timer(this.#scaling.intervalMs, () => {
      this.#transactions.runUnrequested((tx) => {
        const isOfInterest = this.#scaling.observe(tx.state, this.#softState(tx));
        if (isOfInterest) this.#refreshFigures(tx.nowMs);
      });
      this.#scaleLater();
    });
  }
}
