/**
 * The coordinated-read scheduler of a task (paper section 3.6). It cuts the task's stream into
 * rounds of `numConsumers` consecutive elements, and gives consumer c element c of a round. So if
 * the pipeline puts batches of equal size next to each other, all consumers get equal batches in a
 * step.
 *
 * A consumer confirms that it holds its part of a round, and gets the answer when all consumers
 * hold theirs. Only then does it give its part to its training loop. So when one loop gets a round,
 * all consumers hold it.
 */
import { LeatError } from "../../core/error.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { FencedRef, Ref } from "../runtime/ref.ts";
import { ElementFetcher, refusedAnswer, type Wanted } from "../exactly_once/fetcher.ts";
import {
  type BandwidthFigures,
  type ElementAnswer,
  type ElementReaderProtocol,
  type ElementSourceProtocol,
  type GetElementRequest,
  isFinal,
  ROUNDS_AHEAD_MAX,
  type RoundSourceProtocol,
} from "../worker/protocol.ts";
import { roundSourceAccess } from "../worker/protocol_access.ts";
import { roundSourceChecks } from "../worker/protocol_check.ts";
import type { RequestOf } from "../runtime/protocol.ts";
import { type ReaderId, readerId, releaseArrived, Repeats } from "../exactly_once/repeats.ts";
import { type Round, Rounds } from "./rounds.ts";

/** The scheduler's client id at its task; real clients count from 0. */
const READS_CLIENT_ID = -2;
/** How long one request to the task may stay open, in ms. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Rounds less than this far behind the newest can still be requested, even from another task. */
const ROUNDS_HELD_MAX = 2 * ROUNDS_AHEAD_MAX;
/** Default of `heldBytesMax`. */
const HELD_BYTES_MAX = 256 * 2 ** 20;

/** How a scheduler is set up: plain data, so that it can be placed on any node. */
export interface ReadsConfig {
  readonly task: FencedRef<ElementSourceProtocol>;
  readonly numConsumers: number;
  /** A round that is not ready this long after it has begun is skipped by all consumers, in ms. */
  readonly skipAfterMs: number;
  /** While more bytes wait for lagging consumers, no later round begins. Default 256 MiB. */
  readonly heldBytesMax?: number;
}

export function createReads(
  context: ActorContext<RoundSourceProtocol>,
  config: ReadsConfig,
): Actor<RoundSourceProtocol> {
  const reads = new Reads(context, config);
  return {
    handlers: {
      getElement: (request, { source }) =>
        reads.getElement(request, source as Ref<ElementReaderProtocol>),
      confirm: (request) => reads.confirm(request),
      leave: ({ clientId }, { source }) => {
        reads.leave(readerId(source, clientId));
        return null;
      },
      stats: () => reads.stats(),
      askAgain: () => ({ acknowledged: reads.askAgain() }),
      isRead: () => reads.isRead(),
      haveAllLeft: () => reads.haveAllLeft(),
    },
    checks: roundSourceChecks,
    access: roundSourceAccess,
    stop: () => reads.stop(),
  };
}

class Reads {
  readonly #context: ActorContext;
  readonly #config: ReadsConfig;
  readonly #repeats: Repeats;
  readonly #fetcher: ElementFetcher;
  /** A consumer's newest figures on how it reads; undefined once they are sent to the task. */
  #bandwidth: BandwidthFigures | undefined;
  readonly #rounds: Rounds;
  /** Consumers that have requested a round, and have not left since. */
  readonly #readers = new Set<ReaderId>();
  #hasReaders = false;
  /** The requested rounds that have not begun, each with the function that begins or drops it. */
  readonly #waiting = new Map<number, (step: "begin" | "drop") => void>();
  /** Whether a round is waiting for its group of elements: each group serves one round. */
  #isBeginning = false;
  /** The next group of elements, gathered while the previous round is consumed. */
  #next: Promise<readonly ElementAnswer[]> | undefined;
  /** Whether `#next` is complete, and has elements or errors. */
  #holdsNext = false;
  #produced = 0;
  #skipped = 0;
  #served = 0;

  constructor(context: ActorContext, config: ReadsConfig) {
    this.#context = context;
    this.#config = config;
    this.#rounds = new Rounds(config.numConsumers);
    this.#repeats = new Repeats(context.world, {
      onArrived: releaseArrived,
      onEnded: (reader) => this.#readers.delete(reader),
    });
    this.#fetcher = new ElementFetcher(context, config.task, {
      clientId: READS_CLIENT_ID,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
    });
  }

  getElement(
    request: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const { consumerIndex, round, floor = 0, bandwidth } = request;
    if (bandwidth !== undefined) this.#bandwidth = bandwidth;
    if (consumerIndex === undefined || round === undefined) {
      throw new LeatError(
        "invalid_argument",
        "Coordinated reads: a request must have a consumerIndex and a round",
      );
    }
    this.#checkIndex(consumerIndex);
    // Noted at once, so that a waiting request need not keep the list of absent consumers.
    this.#rounds.noteWanted(consumerIndex, {
      floor,
      number: round,
      absent: this.#absentOf(request),
    });
    try {
      return this.#repeats.answer(request, () => {
        this.#readers.add(readerId(asker as Ref, request.clientId));
        this.#hasReaders = true;
        return this.#read(consumerIndex, round);
      }, asker);
    } finally {
      this.#admit();
    }
  }

  confirm(request: RequestOf<RoundSourceProtocol, "confirm">): null | Promise<null> {
    const { consumerIndex, round: number } = request;
    this.#checkIndex(consumerIndex);
    const round = this.#rounds.get(number);
    if (round === undefined) {
      throw new LeatError(
        "failed_precondition",
        `Consumer ${consumerIndex} confirms round ${number}, which this scheduler does not keep: ` +
          `round ${this.#rounds.newest} has been reached`,
      );
    }
    const absent = this.#absentOf(request);
    this.#rounds.noteWanted(consumerIndex, { floor: 0, number, absent });
    const wait = this.#rounds.confirm(round, consumerIndex, absent);
    // Only now, because `#admit` may forget the round.
    this.#admit();
    return wait === undefined ? null : wait.then(() => null);
  }

  leave(reader: ReaderId): void {
    this.#repeats.leave(reader);
    this.#admit();
  }

  /** See {@linkcode ElementFetcher.askAgain}. */
  askAgain(): number {
    return this.#fetcher.askAgain();
  }

  /** See `ProxyProtocol.isRead`. All consumers must hold what is in a round: no loop gets less. */
  isRead(): boolean {
    return this.haveAllLeft() || !this.#holdsNext && !this.#rounds.isAnyOpen;
  }

  /** See `ProxyProtocol.haveAllLeft`. */
  haveAllLeft(): boolean {
    return this.#hasReaders && this.#readers.size === 0;
  }

  stop(): void {
    this.#fetcher.leave();
  }

  stats() {
    return {
      role: "reads" as const,
      produced: this.#produced,
      served: this.#served,
      bufferedBytes: this.#rounds.bytes,
      bytesRead: 0,
      skipped: this.#skipped,
    };
  }

  async #read(consumerIndex: number, number: number): Promise<ElementAnswer> {
    const round = this.#rounds.get(number) ?? this.#open(consumerIndex, number);
    this.#admit();
    await round.ready;
    // Meanwhile other consumers may have requested far later rounds, so that this one was
    // forgotten.
    if (this.#rounds.get(number) !== round) throw this.#passed(consumerIndex, number);
    const answer = this.#rounds.give(round, consumerIndex);
    if (answer === undefined) {
      throw new LeatError(
        "failed_precondition",
        `Consumer ${consumerIndex} asks for round ${number} again, which it was given; was it ` +
          `restarted? A consumer that restarts must join again`,
      );
    }
    // `#repeats` keeps the answer until the consumer acknowledges it.
    this.#served++;
    this.#admit();
    return answer;
  }

  #open(consumerIndex: number, number: number): Round {
    if (number <= this.#rounds.newest - ROUNDS_HELD_MAX) throw this.#passed(consumerIndex, number);
    const { promise, resolve } = Promise.withResolvers<"begin" | "drop">();
    this.#waiting.set(number, resolve);
    const ready = promise.then((step) => step === "begin" ? this.#begin(round) : undefined);
    ready.catch(() => {});
    const round = this.#rounds.add(number, ready);
    this.#forget();
    return round;
  }

  /**
   * Forgets rounds that are old or that no consumer wants. Refuses the waiting requests for them.
   */
  #forget(): void {
    this.#rounds.forget(this.#rounds.newest - ROUNDS_HELD_MAX);
    for (const [number, settle] of this.#waiting) {
      if (this.#rounds.get(number) !== undefined) continue;
      this.#waiting.delete(number);
      settle("drop");
    }
  }

  #passed(consumerIndex: number, number: number): LeatError {
    return new LeatError(
      "failed_precondition",
      `Consumer ${consumerIndex} asks for round ${number}, but round ${this.#rounds.newest} has ` +
        `been reached; was it restarted? A consumer that restarts must join again`,
    );
  }

  /** Begins the lowest waiting round, if no other round is beginning and there is space. */
  #admit(): void {
    if (this.#isBeginning || this.#waiting.size === 0 || this.#repeats.isAtLimit) return;
    if (!this.#hasRoom()) this.#forget();
    if (this.#waiting.size === 0) return;
    let number = Infinity;
    for (const waiting of this.#waiting.keys()) number = Math.min(number, waiting);
    // Without room, only a round before all held ones begins: lagging consumers need it first.
    if (!this.#hasRoom() && number > this.#rounds.lowestHeld) return;
    this.#isBeginning = true;
    this.#waiting.get(number)!("begin");
    this.#waiting.delete(number);
  }

  #hasRoom(): boolean {
    const { heldBytesMax = HELD_BYTES_MAX } = this.#config;
    return this.#rounds.bytes < heldBytesMax;
  }

  async #begin(round: Round): Promise<void> {
    try {
      this.#rounds.fill(round, await this.#elementsOrSkips());
    } finally {
      this.#isBeginning = false;
      this.#admit();
    }
  }

  /**
   * Starts to gather the next group of elements, unless that is in progress. Not before a consumer has
   * asked: if the node restarts before the worker knows this scheduler, another one takes its place,
   * and must get the same elements.
   */
  #fill(): void {
    this.#next ??= this.#gather();
    this.#next.catch(() => {});
  }

  /**
   * The gathered elements. If they come too late, this round is skipped, and the next one gets
   * them.
   */
  #elementsOrSkips(): Promise<readonly ElementAnswer[]> {
    this.#fill();
    const gathering = this.#next!;
    const skips = Promise.withResolvers<readonly ElementAnswer[]>();
    const skipsAtOnce = this.#context.world.fault("reads.skip_at_once");
    const timer = this.#context.timer(skipsAtOnce ? 0 : this.#config.skipAfterMs, () => {
      this.#skipped++;
      skips.resolve(Array<ElementAnswer>(this.#config.numConsumers).fill({ kind: "skip" }));
    });
    const first = Promise.race([gathering, skips.promise]).finally(() => timer.cancel());
    return first.then((answers) => {
      if (this.#next === gathering && answers[0]?.kind !== "skip") {
        this.#next = undefined;
        this.#holdsNext = false;
        this.#fill();
      }
      return answers;
    }, (error) => {
      // The next round asks the task again; otherwise all later rounds would fail like this one.
      if (this.#next === gathering) this.#next = undefined;
      throw error;
    });
  }

  async #gather(): Promise<readonly ElementAnswer[]> {
    const { numConsumers } = this.#config;
    const wanted = this.#bandwidth === undefined ? {} : { bandwidth: this.#bandwidth };
    this.#bandwidth = undefined;
    const answers = await Promise.all(
      Array.from({ length: numConsumers }, (_, i) => this.#fetch(i === 0 ? wanted : {})),
    );
    const failure = answers.find(isFinal);
    if (failure !== undefined) return answers.map(() => failure);
    this.#produced += numConsumers;
    const end = answers.find(({ kind }) => kind === "end");
    this.#holdsNext = end === undefined;
    if (end === undefined) return answers;
    // Too few elements are left for a round: they are dropped, and an error among them goes to all.
    const error = answers.find(({ kind }) => kind === "error");
    return answers.map((answer) => answer.kind === "error" ? answer : error ?? end);
  }

  /**
   * If the task refuses an element, its consumer alone gets the error, unless the error is final.
   */
  async #fetch(wanted: Wanted): Promise<ElementAnswer> {
    try {
      return await this.#fetcher.fetch(wanted);
    } catch (error) {
      const answer = refusedAnswer(LeatError.from(error));
      if (isFinal(answer)) throw error;
      return answer;
    }
  }

  #checkIndex(consumerIndex: number): void {
    const { numConsumers } = this.#config;
    if (Number.isInteger(consumerIndex) && consumerIndex >= 0 && consumerIndex < numConsumers) {
      return;
    }
    throw new LeatError(
      "invalid_argument",
      `Consumer index ${consumerIndex} is out of range: the job has ${numConsumers} consumers`,
    );
  }

  /** The consumers that the request names as absent, each once and without its own. */
  #absentOf(
    { consumerIndex, absent = [] }: {
      readonly consumerIndex?: number;
      readonly absent?: readonly number[];
    },
  ): number[] {
    for (const index of absent) this.#checkIndex(index);
    return [...new Set(absent)].filter((index) => index !== consumerIndex);
  }
}
