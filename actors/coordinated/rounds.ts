/**
 * A scheduler's rounds: which consumers fetched and confirmed their parts, and the bytes that wait.
 */
import { LeatError } from "../../core/error.ts";
import { bytesOfAnswer } from "../exactly_once/kept_answers.ts";
import type { ElementAnswer } from "../worker/protocol.ts";
import { ConsumerSet } from "./consumer_set.ts";

/** Limit of waiting confirmations over all rounds: enough for two rounds of 65,536 consumers. */
export const CONFIRMATIONS_MAX = 131_072;
/** Limit of the bytes of their sets of absent consumers. Equal sets of a round count once. */
export const ABSENT_BYTES_MAX = 4 * 2 ** 20;
/** Bytes counted for each set besides its bits. */
const SET_BYTES = 512;

/** One round: an answer for each consumer, or a skip for all of them. */
export interface Round {
  readonly number: number;
  /** Settles when the round has its answers. */
  readonly ready: Promise<void>;
  /** By consumer; undefined once it has fetched its part. Empty until the round is ready. */
  readonly answers: (ElementAnswer | undefined)[];
  /** Whether its answers are elements or errors, and not only skips or the end. */
  hasItems: boolean;
  /** Consumers that have confirmed that they hold their part. */
  readonly holders: ConsumerSet;
  /** The confirmations that wait for other consumers, by consumer. */
  readonly waiting: Map<number, Waiting>;
  /** The waiting confirmations, grouped by the absent consumers that they name. */
  readonly groups: Set<Group>;
}

/** Confirmations with the same absent consumers. */
interface Group {
  readonly absent: ConsumerSet;
  /** How many consumers take part and do not hold the round yet. */
  missing: number;
  readonly members: Map<number, Waiting>;
}

interface Waiting {
  readonly group: Group;
  readonly resolve: () => void;
  readonly reject: (error: LeatError) => void;
}

export class Rounds {
  readonly #numConsumers: number;
  readonly #rounds = new Map<number, Round>();
  /** By consumer index: the consumer wants no round before this one. */
  readonly #floors: number[];
  #newest = -1;
  #bytes = 0;
  #confirmations = 0;
  #absentBytes = 0;

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

  /** Bytes of the sets of absent consumers in waiting confirmations. */
  get absentBytes(): number {
    return this.#absentBytes;
  }

  /** The lowest round with an element that is not fetched yet; Infinity if there is none. */
  get lowestHeld(): number {
    let lowest = Infinity;
    for (const { number, answers } of this.#rounds.values()) {
      if (number < lowest && answers.some((answer) => answer !== undefined)) lowest = number;
    }
    return lowest;
  }

  /** Whether a consumer that wants a round has not confirmed that it holds its part. */
  get isAnyOpen(): boolean {
    return this.#rounds.values().some(({ number, hasItems, holders }) =>
      hasItems && this.#floors.some((floor, index) => floor <= number && !holders.has(index))
    );
  }

  get(number: number): Round | undefined {
    return this.#rounds.get(number);
  }

  add(number: number, ready: Promise<void>): Round {
    const holders = new ConsumerSet(this.#numConsumers);
    const added: Round = {
      number,
      ready,
      answers: [],
      hasItems: false,
      holders,
      waiting: new Map(),
      groups: new Set(),
    };
    this.#rounds.set(number, added);
    this.#newest = Math.max(this.#newest, number);
    return added;
  }

  fill(round: Round, answers: readonly ElementAnswer[]): void {
    if (this.#rounds.get(round.number) !== round) return;
    round.answers.push(...answers);
    round.hasItems = answers.some(({ kind }) => kind === "element" || kind === "error");
    for (const answer of answers) this.#bytes += bytesOfAnswer(answer);
  }

  /** Removes and returns the consumer's part; undefined if the consumer has fetched it before. */
  give({ answers }: Round, consumerIndex: number): ElementAnswer | undefined {
    const answer = answers[consumerIndex];
    answers[consumerIndex] = undefined;
    this.#bytes -= bytesOfAnswer(answer);
    return answer;
  }

  /**
   * Notes that the consumer holds its part. Resolves when all consumers except the absent ones hold
   * theirs; undefined if they do already. A repeated call rejects the earlier one with `cancelled`,
   * so that repeated calls do not accumulate while another consumer is away.
   * @throws {LeatError} `resource_exhausted` if too many wait. The consumer counts as a holder even
   *   so; it should confirm again later.
   */
  confirm(
    round: Round,
    consumerIndex: number,
    absent: readonly number[],
  ): Promise<void> | undefined {
    if (round.holders.add(consumerIndex)) {
      for (const group of round.groups) {
        if (group.absent.has(consumerIndex) || --group.missing > 0) continue;
        for (const [index, { resolve }] of group.members) {
          this.#remove(round, index);
          resolve();
        }
      }
    }
    const earlier = round.waiting.get(consumerIndex);
    this.#remove(round, consumerIndex);
    earlier?.reject(confirmedAgain(round, consumerIndex));
    const group = this.#groupOf(round, absent);
    if (group.missing <= 0) return undefined;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#wait(round, consumerIndex, { group, resolve, reject });
    return promise;
  }

  /** The group with the same absent consumers, or a new one that is not in `groups` yet. */
  #groupOf({ holders, groups }: Round, named: readonly number[]): Group {
    const absent = new ConsumerSet(this.#numConsumers);
    for (const index of named) absent.add(index);
    for (const group of groups) if (group.absent.equals(absent)) return group;
    const missing = this.#numConsumers - absent.sizeWith(holders);
    return { absent, missing, members: new Map() };
  }

  /**
   * Adds a waiting confirmation. The limits are needed because a client may name any absent
   * consumers.
   */
  #wait(round: Round, consumerIndex: number, waiting: Waiting): void {
    const { group } = waiting;
    const added = round.groups.has(group) ? 0 : bytesOf(group);
    const bytes = this.#absentBytes + added;
    if (this.#confirmations >= CONFIRMATIONS_MAX || bytes > ABSENT_BYTES_MAX) {
      throw tooMany(this.#confirmations, bytes);
    }
    this.#confirmations++;
    this.#absentBytes = bytes;
    round.groups.add(group);
    group.members.set(consumerIndex, waiting);
    round.waiting.set(consumerIndex, waiting);
  }

  #remove({ waiting, groups }: Round, consumerIndex: number): void {
    const group = waiting.get(consumerIndex)?.group;
    if (group === undefined) return;
    this.#confirmations--;
    waiting.delete(consumerIndex);
    group.members.delete(consumerIndex);
    if (group.members.size > 0) return;
    groups.delete(group);
    this.#absentBytes -= bytesOf(group);
  }

  /**
   * The consumer wants no round before `floor`; the absent ones want none up to and including
   * `number`.
   */
  noteWanted(
    consumerIndex: number,
    { floor, number, absent }: { floor: number; number: number; absent: readonly number[] },
  ): void {
    this.#raise(consumerIndex, floor);
    for (const index of absent) this.#raise(index, number + 1);
  }

  /** Forgets the rounds that no consumer wants, and those up to and including `upTo`. */
  forget(upTo: number): void {
    const floor = Math.min(...this.#floors);
    for (const round of this.#rounds.values()) {
      if (round.number > upTo && round.number >= floor) continue;
      for (const answer of round.answers) this.#bytes -= bytesOfAnswer(answer);
      for (const [index, { reject }] of round.waiting) {
        this.#remove(round, index);
        reject(roundIsOver(round));
      }
      this.#rounds.delete(round.number);
    }
  }

  #raise(consumerIndex: number, floor: number): void {
    if (!(floor > this.#floors[consumerIndex]!)) return;
    this.#floors[consumerIndex] = floor;
  }
}

function confirmedAgain({ number }: Round, consumerIndex: number): LeatError {
  return new LeatError(
    "cancelled",
    `Consumer ${consumerIndex} has confirmed again that it holds round ${number}`,
  );
}

function tooMany(confirmations: number, absentBytes: number): LeatError {
  return new LeatError(
    "resource_exhausted",
    `${confirmations} confirmations of rounds wait, and their lists of absent consumers would ` +
      `take ${absentBytes} bytes: at most ${CONFIRMATIONS_MAX} confirmations and ` +
      `${ABSENT_BYTES_MAX} bytes are kept. Confirm again later`,
  );
}

function roundIsOver({ number }: Round): LeatError {
  return new LeatError("failed_precondition", `Round ${number} is over: no consumer wants it`);
}

function bytesOf({ absent }: Group): number {
  return SET_BYTES + absent.byteLength;
}
