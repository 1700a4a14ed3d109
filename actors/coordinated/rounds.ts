/** A scheduler's rounds: who fetched and confirmed its part, and the bytes that wait. */
import { LeatError } from "../../core/error.ts";
import { errorBytesOf } from "../exactly_once/kept_answers.ts";
import type { ElementAnswer } from "../worker/protocol.ts";

/** One round: an answer for each consumer, or a skip for all of them. */
export interface Round {
  readonly number: number;
  /** Settles when the round has its answers. */
  readonly ready: Promise<void>;
  /** By consumer; undefined when given. Empty until the round is ready. */
  readonly answers: (ElementAnswer | undefined)[];
  readonly holders: Set<number>;
  readonly waiting: Map<number, Waiting>;
  /** The most absent consumers that one confirmation names. */
  absentMax: number;
}

interface Waiting {
  readonly absent: readonly number[];
  readonly resolve: () => void;
  readonly reject: (error: LeatError) => void;
}

export class Rounds {
  readonly #numConsumers: number;
  readonly #rounds = new Map<number, Round>();
  /** Per consumer, the round before which it wants nothing any more. */
  readonly #floors: number[];
  #newest = -1;
  #bytes = 0;

  constructor(numConsumers: number) {
    this.#numConsumers = numConsumers;
    this.#floors = Array<number>(numConsumers).fill(0);
  }

  /** The newest round requested; -1 before the first. */
  get newest(): number {
    return this.#newest;
  }

  /** Bytes of elements that consumers have not fetched yet. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The lowest round with an element to be fetched; Infinity if there is none. */
  get lowestHeld(): number {
    let lowest = Infinity;
    for (const { number, answers } of this.#rounds.values()) {
      if (number < lowest && answers.some((answer) => answer !== undefined)) lowest = number;
    }
    return lowest;
  }

  get(number: number): Round | undefined {
    return this.#rounds.get(number);
  }

  add(number: number, ready: Promise<void>): Round {
    const round = { number, ready, answers: [], holders: new Set<number>() };
    const added: Round = { ...round, waiting: new Map(), absentMax: 0 };
    this.#rounds.set(number, added);
    this.#newest = Math.max(this.#newest, number);
    return added;
  }

  fill(round: Round, answers: readonly ElementAnswer[]): void {
    if (this.#rounds.get(round.number) !== round) return;
    round.answers.push(...answers);
    for (const answer of answers) this.#bytes += sizeOf(answer);
  }

  /** The consumer's part, which it then owns; undefined if it was given before. */
  give({ answers }: Round, consumerIndex: number): ElementAnswer | undefined {
    const answer = answers[consumerIndex];
    answers[consumerIndex] = undefined;
    this.#bytes -= sizeOf(answer);
    return answer;
  }

  /**
   * The consumer holds its part. Answers when all consumers but the absent ones do. A repeated call
   * replaces the earlier one, or repetitions would pile up while a consumer is away.
   * @throws {LeatError} `cancelled` in the earlier call, when it is repeated.
   */
  confirm(
    round: Round,
    consumerIndex: number,
    absent: readonly number[],
  ): Promise<void> | undefined {
    round.holders.add(consumerIndex);
    // Waiting confirmations are checked only when the last one may have come.
    const mayBeHeld = round.holders.size + round.absentMax >= this.#numConsumers;
    for (const [index, waiting] of mayBeHeld ? round.waiting : []) {
      if (!this.#isHeldByAll(round, waiting.absent)) continue;
      round.waiting.delete(index);
      waiting.resolve();
    }
    round.waiting.get(consumerIndex)?.reject(saidAnew(round, consumerIndex));
    round.waiting.delete(consumerIndex);
    if (this.#isHeldByAll(round, absent)) return undefined;
    round.absentMax = Math.max(round.absentMax, absent.length);
    return new Promise((resolve, reject) =>
      round.waiting.set(consumerIndex, { absent, resolve, reject })
    );
  }

  /** A consumer wants nothing before `floor`; the absent ones want nothing up to and including `number`. */
  noteWanted(
    consumerIndex: number,
    { floor, number, absent }: { floor: number; number: number; absent: readonly number[] },
  ): void {
    this.#raise(consumerIndex, floor);
    for (const index of absent) this.#raise(index, number + 1);
  }

  /** Forgets rounds that are wanted by no consumer, and those up to and including `oldest`. */
  forget(oldest: number): void {
    const floor = Math.min(...this.#floors);
    for (const round of this.#rounds.values()) {
      if (round.number > oldest && round.number >= floor) continue;
      for (const answer of round.answers) this.#bytes -= sizeOf(answer);
      for (const { reject } of round.waiting.values()) reject(forgotten(round));
      this.#rounds.delete(round.number);
    }
  }

  #raise(consumerIndex: number, floor: number): void {
    if (!(floor > this.#floors[consumerIndex]!)) return;
    this.#floors[consumerIndex] = floor;
  }

  #isHeldByAll({ holders }: Round, absent: readonly number[]): boolean {
    const others = absent.filter((index) => !holders.has(index));
    return holders.size + others.length >= this.#numConsumers;
  }
}

function saidAnew({ number }: Round, consumerIndex: number): LeatError {
  return new LeatError(
    "cancelled",
    `Consumer ${consumerIndex} has confirmed again that it holds round ${number}`,
  );
}

function forgotten({ number }: Round): LeatError {
  return new LeatError("failed_precondition", `Round ${number} is over: no consumer wants it`);
}

function sizeOf(answer: ElementAnswer | undefined): number {
  if (answer === undefined) return 0;
  return answer.kind === "element" ? answer.element.byteLength : errorBytesOf(answer);
}
