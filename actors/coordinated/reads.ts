/**
 * The coordinated-read scheduler of a task (paper section 3.6). It cuts the task's stream into
 * rounds of `numConsumers` consecutive elements, and gives consumer c element c of a round. So with
 * a pipeline that groups equal buckets, all consumers of a step get batches of one size.
 *
 * A consumer confirms that it holds its part of a round. The answer comes when all consumers hold
 * theirs. Only then does a training loop get the round, so all consumers hold every round that a loop has.
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
import { type ReaderId, readerId, Repeats } from "../exactly_once/repeats.ts";
import { type Round, Rounds } from "./rounds.ts";

/** The scheduler's client id at its task; real clients count from 0. */
const READS_CLIENT_ID = -2;
/** How long one request to the task may stay open, in ms. */
const REQUEST_TIMEOUT_MS = 60_000;
/** Rounds this far behind the newest can still be requested, also those first served by a lost worker. */
const ROUNDS_HELD_MAX = 2 * ROUNDS_AHEAD_MAX;
/** Bytes that may wait for lagging consumers; above it, no later round begins. */
const HELD_BYTES_MAX = 256 * 2 ** 20;

/** How a scheduler is set up: plain data, so that it can be placed on any node. */
export interface ReadsConfig {
  readonly task: FencedRef<ElementSourceProtocol>;
  readonly numConsumers: number;
  /** If a round is not ready this long after its first request, all consumers skip it, in ms. */
  readonly skipAfterMs: number;
  /** Bytes that may wait for lagging consumers before others wait too. Default 256 MiB. */
  readonly heldBytesMax?: number;
}

/** Makes the scheduler actor. */
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
    },
    checks: roundSourceChecks,
    access: roundSourceAccess,
    start: () => reads.fill(),
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
  /** Rounds requested and not begun, each with the function that begins or drops it. */
  readonly #waiting = new Map<number, (step: "begin" | "drop") => void>();
  /** Whether a round is waiting for its group of elements: each group serves one round. */
  #isBeginning = false;
  /** The next group of elements, gathered while the previous round is consumed. */
  #next: Promise<readonly ElementAnswer[]> | undefined;
  #produced = 0;
  #skipped = 0;
  #served = 0;

  constructor(context: ActorContext, config: ReadsConfig) {
    this.#context = context;
    this.#config = config;
    this.#rounds = new Rounds(config.numConsumers);
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

  getElement(
    request: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const { consumerIndex, round, floor = 0, way } = request;
    if (way !== undefined) this.#bandwidth = way;
    if (consumerIndex === undefined || round === undefined) {
      throw new LeatError(
        "invalid_argument",
        "Coordinated reads: a request must say consumerIndex and round",
      );
    }
    this.#checkIndex(consumerIndex);
    // Noted now, and not when the request is served: a waiting request need not keep the list.
    this.#rounds.noteWanted(consumerIndex, {
      floor,
      number: round,
      absent: this.#absentOf(request),
    });
    try {
      return this.#repeats.answer(request, () => this.#read(consumerIndex, round), asker);
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
        `Consumer ${consumerIndex} confirms round ${number}, which this scheduler does not know: ` +
          `round ${this.#rounds.newest} has been reached`,
      );
    }
    const absent = this.#absentOf(request);
    this.#rounds.noteWanted(consumerIndex, { floor: 0, number, absent });
    const wait = this.#rounds.confirm(round, consumerIndex, absent);
    // After `confirm`, because this may forget the round.
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
    // Meanwhile the other consumers may have begun far later rounds, and the round is forgotten.
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

  /** Forgets rounds that no consumer wants. Requests for those not begun are refused. */
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

  /** Begins the lowest waiting round, if no other is being begun and there is space. */
  #admit(): void {
    if (this.#isBeginning || this.#waiting.size === 0 || this.#repeats.isAtLimit) return;
    if (!this.#hasRoom()) this.#forget();
    if (this.#waiting.size === 0) return;
    let number = Infinity;
    for (const waiting of this.#waiting.keys()) number = Math.min(number, waiting);
    // An earlier round begins even without room: lagging consumers need it before the rounds held.
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
      this.#rounds.fill(round, await this.#inTime());
    } finally {
      this.#isBeginning = false;
      this.#admit();
    }
  }

  /** The gathered elements. If they come too late, this round is skipped, and the next one gets them. */
  #inTime(): Promise<readonly ElementAnswer[]> {
    this.fill();
    const gathering = this.#next!;
    const late = Promise.withResolvers<readonly ElementAnswer[]>();
    const isOver = this.#context.world.fault("reads.skip_at_once");
    const timer = this.#context.timer(isOver ? 0 : this.#config.skipAfterMs, () => {
      this.#skipped++;
      late.resolve(Array<ElementAnswer>(this.#config.numConsumers).fill({ kind: "skip" }));
    });
    return Promise.race([gathering, late.promise]).finally(() => timer.cancel()).then((answers) => {
      if (this.#next === gathering && answers[0]?.kind !== "skip") {
        this.#next = undefined;
        this.fill();
      }
      return answers;
    }, (error) => {
      // The next round must ask the task again, or every later round would fail like this one.
      if (this.#next === gathering) this.#next = undefined;
      throw error;
    });
  }

  async #gather(): Promise<readonly ElementAnswer[]> {
    const { numConsumers } = this.#config;
    const wanted = this.#bandwidth === undefined ? {} : { way: this.#bandwidth };
    this.#bandwidth = undefined;
    const answers = await Promise.all(
      Array.from({ length: numConsumers }, (_, i) => this.#fetch(i === 0 ? wanted : {})),
    );
    const failure = answers.find(isFinal);
    if (failure !== undefined) return answers.map(() => failure);
    this.#produced += numConsumers;
    const end = answers.find(({ kind }) => kind === "end");
    if (end === undefined) return answers;
    // The last elements, if too few for a round, are dropped. An error among them goes to all.
    const error = answers.find(({ kind }) => kind === "error");
    return answers.map((answer) => answer.kind === "error" ? answer : error ?? end);
  }

  /** If the task refuses one element, only that element's consumer gets the error, unless it is final. */
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

  /** The other consumers of the job that take no part. */
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
