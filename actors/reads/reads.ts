/**
 * The coordinated-read scheduler before a task (paper section 3.6). It cuts the task's stream into
 * rounds of `numConsumers` consecutive elements, and gives consumer c element c of a round, so that
 * with a pipeline that groups equal buckets all consumers of a step get batches of one size.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { FencedRef } from "../runtime/ref.ts";
import { ElementFetcher } from "../elements/fetcher.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
} from "../worker/protocol.ts";
import { Repeats } from "../elements/repeats.ts";

/** The scheduler's client id towards its task; real clients count from 0. */
const READS_CLIENT_ID = -2;
/** How long one request to the task may stay open, in ms. */
const REQUEST_TIMEOUT_MS = 60_000;
/**
 * How far behind the newest round a consumer may come for one: rounds within it are kept, and one that
 * a lost worker was to serve can still be asked for.
 */
const ROUNDS_HELD_MAX = 64;

/** How a scheduler is set up: plain data, so that it can be placed on any node. */
export interface ReadsConfig {
  readonly task: FencedRef<ElementSourceProtocol>;
  readonly numConsumers: number;
  /** A round that is not ready this long after a consumer asked is skipped by all, in ms. */
  readonly skipAfterMs: number;
}

/** Makes the scheduler actor. */
export function createReads(
  context: ActorContext<ElementSourceProtocol>,
  config: ReadsConfig,
): Actor<ElementSourceProtocol> {
  const reads = new Reads(context, config);
  return {
    handlers: {
      getElement: (request) => reads.getElement(request),
      leave: ({ clientId }) => {
        reads.leave(clientId);
        return null;
      },
      stats: () => reads.stats(),
    },
    start: () => reads.fill(),
    stop: () => reads.stop(),
  };
}

/** One round: what each consumer gets, or a skip for all of them. */
interface Round {
  readonly ready: Promise<void>;
  /** By consumer; undefined when it was served. Empty until the round is ready. */
  answers: (ElementAnswer | undefined)[];
}

class Reads {
  readonly #context: ActorContext;
  readonly #config: ReadsConfig;
  readonly #repeats: Repeats;
  readonly #fetcher: ElementFetcher;
  readonly #rounds = new Map<number, Round>();
  /** The next group of elements: being gathered while the round before it is consumed. */
  #next: Promise<readonly ElementAnswer[]> | undefined;
  /** Settles when every round begun so far has its elements: a group serves one round. */
  #begun: Promise<unknown> = Promise.resolve();
  #newestRound = -1;
  #produced = 0;
  #served = 0;

  constructor(context: ActorContext, config: ReadsConfig) {
    this.#context = context;
    this.#config = config;
    this.#repeats = new Repeats(context.world);
    this.#fetcher = new ElementFetcher(context, config.task, {
      clientId: READS_CLIENT_ID,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
    });
  }

  /** Begins to gather the next round. */
  fill(): void {
    this.#next ??= this.#gather();
    this.#next.catch(() => {});
  }

  getElement(request: GetElementRequest): ElementAnswer | Promise<ElementAnswer> {
    const { consumerIndex, round } = request;
    const { numConsumers } = this.#config;
    if (consumerIndex === undefined || round === undefined) {
      throw new LeatError(
        "invalid_argument",
        "Coordinated reads: a request must say consumerIndex and round",
      );
    }
    if (!(consumerIndex >= 0 && consumerIndex < numConsumers)) {
      throw new LeatError(
        "invalid_argument",
        `Consumer index ${consumerIndex} is out of range: the job has ${numConsumers} consumers`,
      );
    }
    return this.#repeats.answer(request, () => this.#read(consumerIndex, round));
  }

  leave(clientId: number): void {
    this.#repeats.leave(clientId);
  }

  stop(): void {
    this.#fetcher.leave();
  }

  stats() {
    return {
      role: "reads" as const,
      produced: this.#produced,
      served: this.#served,
      bufferedBytes: this.#heldBytes,
      bytesRead: 0,
      skipped: 0,
    };
  }

  async #read(consumerIndex: number, number: number): Promise<ElementAnswer> {
    let round = this.#rounds.get(number);
    if (round === undefined) {
      if (number <= this.#newestRound - ROUNDS_HELD_MAX) {
        throw new LeatError(
          "failed_precondition",
          `Consumer ${consumerIndex} asks for round ${number}, but round ${this.#newestRound} has been ` +
            `reached; was it restarted? A consumer that restarts must join again`,
        );
      }
      round = this.#open();
      this.#newestRound = Math.max(this.#newestRound, number);
      this.#rounds.set(number, round);
      this.#forget();
    }
    await round.ready;
    const answer = round.answers[consumerIndex];
    if (answer === undefined) {
      throw new LeatError(
        "failed_precondition",
        `Consumer ${consumerIndex} asks for round ${number} again, which it was given`,
      );
    }
    // From here on it is kept for who asked, until that has arrived.
    round.answers[consumerIndex] = undefined;
    this.#served++;
    return answer;
  }

  /** Opens a round, which gets its elements after those before it. */
  #open(): Round {
    const begun = this.#begun.then(() => this.#begin());
    const round: Round = {
      ready: begun.then((answers) => {
        round.answers = [...answers];
      }),
      answers: [],
    };
    this.#begun = round.ready.catch(() => {});
    return round;
  }

  /** Bytes of elements that consumers have yet to come for. */
  get #heldBytes(): number {
    let bytes = 0;
    for (const { answers } of this.#rounds.values()) {
      for (const answer of answers) {
        if (answer?.kind === "element") bytes += answer.element.byteLength;
      }
    }
    return bytes;
  }

  /** The gathered elements if they come in time, or a skip: then they are for the next round asked for. */
  #begin(): Promise<readonly ElementAnswer[]> {
    this.fill();
    const gathering = this.#next!;
    const late = Promise.withResolvers<readonly ElementAnswer[]>();
    const timer = this.#context.timer(this.#config.skipAfterMs, () => {
      late.resolve(Array<ElementAnswer>(this.#config.numConsumers).fill({ kind: "skip" }));
    });
    return Promise.race([
      gathering.then((answers) => {
        timer.cancel();
        return answers;
      }),
      late.promise,
    ]).then((answers) => {
      if (this.#next === gathering && answers[0]?.kind !== "skip") {
        this.#next = undefined;
        this.fill();
      }
      return answers;
    });
  }

  async #gather(): Promise<readonly ElementAnswer[]> {
    const { numConsumers } = this.#config;
    const answers = await Promise.all(
      Array.from({ length: numConsumers }, () => this.#fetcher.fetch()),
    );
    this.#produced += numConsumers;
    const end = answers.find((answer) => answer.kind === "end");
    return end === undefined ? answers : Array<ElementAnswer>(numConsumers).fill(end);
  }

  #forget(): void {
    for (const number of this.#rounds.keys()) {
      if (number <= this.#newestRound - ROUNDS_HELD_MAX) this.#rounds.delete(number);
    }
  }
}
