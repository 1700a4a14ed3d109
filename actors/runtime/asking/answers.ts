/** Keeps the answers to repeatable requests: a repeated one gets its answer, and is not handled again. */
import { LeatError } from "../../../core/error.ts";
import { bytesOfBody } from "../body.ts";
import type { AskEnvelope, FailureEnvelope, ReplyEnvelope } from "../envelope.ts";
import { type Identity, senderKeyOf } from "../identity.ts";
import type { FencedRef } from "../ref.ts";
import { ANSWER_NOT_KEPT } from "./asks.ts";

/**
 * Limit of the answers that an actor keeps. Above it, answers are dropped until `ANSWERS_LEFT`
 * remain: first those of the identity with the most answers, and of its longest idle asker. A repeated
 * ask is then handled again: an error in place of the answer would fail askers that still live.
 */
const ANSWERS_MAX = 16_384;
const ANSWERS_LEFT = 15_360;
/**
 * Limit of the bytes of answers that a node keeps for one identity; admins have none. An asker that
 * settles its answers stays far below. Above the limit, an answer is sent once and not kept.
 */
export const KEPT_BYTES_MAX = 64 * 2 ** 20;
/** An asker's answers are dropped this long after its last deadline, in ms: no repeat can come then. */
export const FORGET_AFTER_MS = 60_000;
/** From this many answers on, the actor finds out whether their askers are still alive. */
export const CHECK_FROM = 64;
/** An asker idle for this long, in ms, is checked. A waiting asker repeats its request sooner. */
export const IDLE_MS = 3_000;
/** How often idle askers are looked for, in ms, and how many of them at a time. */
const CHECK_EVERY_MS = 1_000;
const IDLE_MAX = 256;

/** An answer without the numbering of a particular envelope. */
export type Answer =
  | Pick<ReplyEnvelope, "kind" | "body">
  | Pick<FailureEnvelope, "kind" | "error">;

/** The fields of an ask that concern repetition. */
export type RepeatableAsk = Pick<AskEnvelope, "id" | "timeoutMs" | "open"> & {
  readonly settledBelow: number;
};

interface Kept {
  readonly answer: Answer;
  /** Counted in {@linkcode KeptBytes}. */
  readonly bytes: number;
}

/** The answer to an ask that is repeated although its answer was not kept. */
const NOT_KEPT: Kept = {
  bytes: 0,
  answer: {
    kind: "failure",
    error: new LeatError(
      "aborted",
      `The answer was given before and was not kept: unsettled answers for this identity may take ` +
        `at most ${KEPT_BYTES_MAX} bytes`,
      { details: { reason: ANSWER_NOT_KEPT } },
    ).toWire(),
  },
};

/** The bytes of answers that a node keeps, by the identity of the asker. Admins have no bound. */
export class KeptBytes {
  readonly #bytes = new Map<string, number>();

  of(owner: string): number {
    return this.#bytes.get(owner) ?? 0;
  }

  /** Returns false and adds nothing if the sum would be above {@linkcode KEPT_BYTES_MAX}. */
  add(owner: string, bytes: number): boolean {
    const sum = this.of(owner) + bytes;
    if (sum > KEPT_BYTES_MAX) return false;
    this.#bytes.set(owner, sum);
    return true;
  }

  remove(owner: string, bytes: number): void {
    const left = this.of(owner) - bytes;
    if (left > 0) this.#bytes.set(owner, left);
    else this.#bytes.delete(owner);
  }
}

/** An asker, with the key that distinguishes it from others; see {@linkcode senderKeyOf}. */
export interface KnownAsker extends FencedRef {
  readonly key: string;
}

/** The answers to one asker. */
class Asker {
  readonly answers = new Map<number, Kept | "pending">();
  readonly ref: KnownAsker;
  /** Its identity; empty for all admins. */
  readonly owner: string;
  /** The asker's last deadline. */
  untilMs = 0;
  lastAskMs = 0;
  /** How long it may be idle before it is checked; doubles, so that a live asker costs few messages. */
  idleMs = IDLE_MS;

  constructor(ref: KnownAsker, owner: string) {
    this.ref = ref;
    this.owner = owner;
  }
}

/** The answers that one actor has given to asks that may be repeated. */
export class Answers {
  readonly #askers = new Map<string, Asker>();
  readonly #keptBytes: KeptBytes;
  #settled = 0;
  #sweptMs = 0;
  #checkedMs = 0;

  /** @param keptBytes The bytes of all actors of the node. */
  constructor(keptBytes = new KeptBytes()) {
    this.#keptBytes = keptBytes;
  }

  get size(): number {
    return this.#settled;
  }

  /** Notes that an ask has come: `"new"` means it must be handled now. */
  begin(
    asker: FencedRef,
    sender: Identity,
    { id, settledBelow, open, timeoutMs }: RepeatableAsk,
    nowMs: number,
  ): Answer | "pending" | "new" {
    if (nowMs - this.#sweptMs >= FORGET_AFTER_MS) this.#sweep(nowMs);
    const key = senderKeyOf(asker.incarnation, sender);
    let known = this.#askers.get(key);
    if (known === undefined) {
      const owner = sender.role === "admin" ? "" : sender.name;
      this.#askers.set(key, known = new Asker({ ...asker, key }, owner));
    }
    known.lastAskMs = nowMs;
    known.untilMs = Math.max(known.untilMs, nowMs + timeoutMs);
    const { answers } = known;
    this.#dropSettled(known, settledBelow, open);
    const answer = answers.get(id);
    if (answer !== undefined) return answer === "pending" ? answer : answer.answer;
    answers.set(id, "pending");
    return "new";
  }

  /** Whether it is time to find out which askers have ended. */
  isIdleCheckDue(nowMs: number): boolean {
    return this.#settled >= CHECK_FROM && nowMs - this.#checkedMs >= CHECK_EVERY_MS;
  }

  /** Askers that have been idle for so long that they may have ended. */
  idleAskers(nowMs: number): KnownAsker[] {
    this.#checkedMs = nowMs;
    const idle: KnownAsker[] = [];
    for (const asker of this.#askers.values()) {
      if (nowMs - asker.lastAskMs < asker.idleMs) continue;
      asker.idleMs *= 2;
      if (idle.push(asker.ref) >= IDLE_MAX) break;
    }
    return idle;
  }

  /** Drops the answers of an asker that has ended. The caller must refuse its late envelopes. */
  forget(key: string): void {
    const asker = this.#askers.get(key);
    if (asker === undefined) return;
    for (const id of asker.answers.keys()) this.#release(asker, id);
    this.#askers.delete(key);
  }

  /** Drops everything: the actor has ended. */
  clear(): void {
    for (const key of this.#askers.keys()) this.forget(key);
  }

  /** Keeps the answer of an ask that `begin` called new. */
  settle(key: string, id: number, answer: Answer): void {
    const asker = this.#askers.get(key);
    if (asker?.answers.get(id) !== "pending") return;
    asker.answers.set(id, this.#kept(asker, answer));
    if (++this.#settled > ANSWERS_MAX) this.#makeRoom();
  }

  /** Forgets an ask, so that a repetition is handled again. */
  drop(key: string, id: number): void {
    const asker = this.#askers.get(key);
    if (asker === undefined) return;
    this.#release(asker, id);
    if (asker.answers.size === 0) this.#askers.delete(key);
  }

  #kept({ owner }: Asker, answer: Answer): Kept {
    if (owner === "") return { answer, bytes: 0 };
    const bytes = bytesOfBody(answer);
    return this.#keptBytes.add(owner, bytes) ? { answer, bytes } : NOT_KEPT;
  }

  #release({ answers, owner }: Asker, id: number): void {
    const answer = answers.get(id);
    answers.delete(id);
    if (answer === undefined || answer === "pending") return;
    this.#settled--;
    if (answer.bytes > 0) this.#keptBytes.remove(owner, answer.bytes);
  }

  #dropSettled(
    asker: Asker,
    settledBelow: number,
    open: readonly number[] | undefined,
  ): void {
    const end = open?.at(-1) ?? settledBelow;
    for (const id of asker.answers.keys()) {
      // Ids are in nearly ascending order: the rest is newer. A later call drops what this one misses.
      if (id >= end) return;
      if (open !== undefined && open.includes(id)) continue;
      this.#release(asker, id);
    }
  }

  /** Drops the answers of askers whose last deadline is long past. */
  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const [asker, { answers, untilMs }] of this.#askers) {
      if (nowMs - untilMs < FORGET_AFTER_MS) continue;
      for (const [id, answer] of answers) if (answer !== "pending") this.drop(asker, id);
    }
  }

  #makeRoom(): void {
    const counts = new Map<string, number>();
    for (const { owner, answers } of this.#askers.values()) {
      counts.set(owner, (counts.get(owner) ?? 0) + answers.size);
    }
    const mostFirst = [...counts].sort(([, a], [, b]) => b - a);
    for (const [owner] of mostFirst) {
      const longestIdleFirst = [...this.#askers].filter(([, asker]) => asker.owner === owner)
        .sort(([, a], [, b]) => a.lastAskMs - b.lastAskMs);
      for (const [key, { answers }] of longestIdleFirst) {
        for (const [id, answer] of answers) {
          if (this.#settled <= ANSWERS_LEFT) return;
          if (answer !== "pending") this.drop(key, id);
        }
      }
    }
  }
}
