/**
 * Asks a service to save a pipeline's elements, and waits. The save continues without its client.
 */
import { hexOf64 } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import type { DatasetNode } from "../../data/node.ts";
import type { DistributeOptions } from "../../data/operators/distribute.ts";
import { seedOf } from "../../data/operators/options.ts";
import { chainOf } from "../../data/deterministic/chain.ts";
import { checkReproducible } from "../../data/deterministic/reproducible.ts";
import { ShardingPolicy } from "../../data/sharding/sharding_policy.ts";
import { type DistributedSaveSettings, IS_SAVED } from "../../data/saved/distributed/work.ts";
import {
  type DispatcherProtocol,
  type JobParameters,
  pauseWithin,
} from "../dispatcher/protocol.ts";
import { dispatcherAnswers } from "../dispatcher/protocol_check.ts";
import type { SavingNews } from "../dispatcher/protocol_heartbeats.ts";
import type { AnswerOf } from "../runtime/protocol.ts";
import { Sleep } from "../runtime/timers.ts";
import { answerIfArrived } from "./heartbeats.ts";
import { ATTEMPT_MS, FIRST_ANSWER_TIMEOUT_MS, firstAnswer } from "./first_answer.ts";
import { type ClientHome, type Credentials, datasetDefinition, type OpenHome } from "./starting.ts";
import { definedFields } from "../../core/tree.ts";

/** Default time between heartbeats, in ms; the service's owner may choose another. */
const REFRESH_MS = 1_000;
/** The first interval, for small saves. It doubles up to the regular interval. */
const REFRESH_MIN_MS = 10;
/** Time limit of one heartbeat, in ms. After it the client sends the next, without end. */
const HEARTBEAT_TIMEOUT_MS = 10_000;
/** Time limit for the release request, in ms. */
const RELEASE_TIMEOUT_MS = 1_000;

/** Options of a save by a service. The caller has checked them. */
interface ServiceSaveOptions extends Credentials {
  readonly save: Omit<DistributedSaveSettings, "fingerprint">;
  readonly onProgress?: ((progress: SavingNews) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Saves a graph; resolves when the save is complete. */
export async function saveByService(
  node: DatasetNode,
  service: DistributeOptions["service"],
  { token, ca, ...options }: ServiceSaveOptions,
  openHome: OpenHome,
): Promise<void> {
  options.signal?.throwIfAborted();
  checkReproducible(node, "distributedSave: lost elements are produced again and must be equal");
  const definition = datasetDefinition(node);
  const home = openHome(service, definedFields({ token, ca }));
  try {
    await new SaveClient(home, node, definition, options).run();
  } finally {
    home.release();
  }
}

class SaveClient {
  readonly #home: ClientHome;
  readonly #definition: ReturnType<typeof datasetDefinition>;
  readonly #options: Omit<ServiceSaveOptions, keyof Credentials>;
  readonly #parameters: Omit<JobParameters, "datasetId">;
  #clientId: number | undefined;
  /** Known to this client alone. It authenticates requests to the dispatcher about this client. */
  readonly #secret: string;
  /** The service has begun this save: a complete save in the folder is this one. */
  #hasBegun = false;
  #reported = "";
  #pauseMs = REFRESH_MIN_MS;
  /** The dispatcher's timeout for a client, in ms; undefined until the dispatcher sends it. */
  #timeoutMs: number | undefined;

  constructor(
    home: ClientHome,
    node: DatasetNode,
    definition: ReturnType<typeof datasetDefinition>,
    options: Omit<ServiceSaveOptions, keyof Credentials>,
  ) {
    this.#home = home;
    const { random } = home.system.world;
    this.#secret = random.hex64() + random.hex64();
    this.#definition = definition;
    this.#options = options;
    const seed = hexOf64(seedOf(node) ?? 0n);
    this.#parameters = {
      processingMode: ShardingPolicy.DETERMINISTIC,
      sharing: false,
      ordered: { seed, shuffled: chainOf(node)?.shuffled ?? false },
      save: { ...options.save, fingerprint: definition.fingerprint },
    };
  }

  async run(): Promise<void> {
    try {
      await this.#untilSaved();
    } finally {
      await this.#leave();
    }
  }

  /**
   * Joins again if the dispatcher forgot this client. The save then resumes from the folder. An
   * aborted client joins once more, too: the save continues without clients, and only one that has
   * joined can end it.
   */
  async #untilSaved(): Promise<void> {
    const { signal } = this.#options;
    try {
      for (;;) {
        const isAborted = signal?.aborted === true;
        this.#clientId = await this.#join();
        if (await this.#follow(this.#clientId)) return;
        if (isAborted) throw signal.reason;
        await this.#pause();
      }
    } catch (error) {
      // The save was completed while no client was connected.
      const isSaved = LeatError.from(error).details?.["reason"] === IS_SAVED;
      if (this.#hasBegun && isSaved) return;
      signal?.throwIfAborted();
      throw error;
    }
  }

  async #join(): Promise<number> {
    const { system, dispatcher, timings } = this.#home;
    const timeoutMs = timings?.firstAnswerTimeoutMs ?? FIRST_ANSWER_TIMEOUT_MS;
    const requestId = system.world.random.hex64();
    const registered = await firstAnswer(
      dispatcher,
      timeoutMs,
      (askOptions) => {
        const request = { ...this.#definition, transient: true } as const;
        return system.ask(dispatcher, "registerDataset", request, askOptions);
      },
    );
    const { datasetId } = dispatcherAnswers.registerDataset(registered, dispatcher.node);
    const request = {
      requestId,
      secret: this.#secret,
      jobName: `distributedSave ${this.#options.save.folder}`,
      parameters: { ...this.#parameters, datasetId },
      repetition: 0,
    };
    const joined = await firstAnswer(
      dispatcher,
      timeoutMs,
      (askOptions) => system.ask(dispatcher, "openIteration", request, askOptions),
    );
    return dispatcherAnswers.openIteration(joined, dispatcher.node).clientId;
  }

  /** Follows the save until it is complete. False if the dispatcher no longer knows this client. */
  async #follow(clientId: number): Promise<boolean> {
    for (;;) {
      const answer = await this.#heartbeat(clientId);
      if (answer === "forgotten") return false;
      if (answer?.error !== undefined) throw LeatError.fromWire(answer.error);
      if (answer?.news?.kind === "save") this.#reportProgress(answer.news.progress);
      if (answer?.finished === true) return true;
      this.#options.signal?.throwIfAborted();
      await this.#pause();
      this.#options.signal?.throwIfAborted();
    }
  }

  /** Undefined if the dispatcher is unreachable. The save continues, and loses nothing. */
  async #heartbeat(
    clientId: number,
  ): Promise<AnswerOf<DispatcherProtocol, "clientHeartbeat"> | "forgotten" | undefined> {
    const { system, dispatcher } = this.#home;
    try {
      const arrived = await answerIfArrived(
        system.ask(dispatcher, "clientHeartbeat", { clientId, secret: this.#secret }, {
          timeoutMs: HEARTBEAT_TIMEOUT_MS,
          attemptMs: ATTEMPT_MS,
        }),
      );
      if (arrived === undefined) return undefined;
      const answer = dispatcherAnswers.clientHeartbeat(arrived, dispatcher.node);
      this.#timeoutMs = answer.timeoutMs;
      return answer;
    } catch (error) {
      const failure = LeatError.from(error);
      // The save may have ended, and another client may have restarted it, before this client knew.
      const isForgotten = failure.code === "not_found" || failure.code === "failed_precondition";
      if (isForgotten) return "forgotten";
      throw failure;
    }
  }

  #reportProgress(progress: SavingNews): void {
    this.#hasBegun = true;
    const text = JSON.stringify(progress);
    if (text === this.#reported) return;
    this.#reported = text;
    this.#options.onProgress?.(progress);
  }

  /** Waits until the next heartbeat is due or the save is cancelled. */
  async #pause(): Promise<void> {
    const { system, timings } = this.#home;
    const { signal } = this.#options;
    const sleep = new Sleep();
    const wake = () => sleep.wake();
    signal?.addEventListener("abort", wake, { once: true });
    await sleep.begin(system.world, pauseWithin(this.#pauseMs, this.#timeoutMs));
    signal?.removeEventListener("abort", wake);
    this.#pauseMs = Math.min(2 * this.#pauseMs, timings?.refreshMs ?? REFRESH_MS);
  }

  async #leave(): Promise<void> {
    if (this.#clientId === undefined) return;
    const { system, dispatcher } = this.#home;
    const cancel = this.#options.signal?.aborted === true;
    const request = {
      clientId: this.#clientId,
      secret: this.#secret,
      ...(cancel ? { cancel } : {}),
    };
    const askOptions = { timeoutMs: RELEASE_TIMEOUT_MS };
    await system.ask(dispatcher, "releaseClient", request, askOptions).catch(() => null);
  }
}
