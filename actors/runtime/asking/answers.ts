/** Answers kept for askers that may repeat a request, which is then not handled again. */
import type { AskEnvelope, FailureEnvelope, ReplyEnvelope } from "../envelope.ts";
import type { FencedRef } from "../ref.ts";

/** Settled answers that an actor keeps; the oldest of the longest idle askers are dropped. */
const ANSWERS_MAX = 16_384;
const ANSWERS_LEFT = 15_360;
/** An asker's answers are dropped this long after its last deadline, in ms: it repeats nothing any more. */
export const FORGET_AFTER_MS = 60_000;
/** From this many answers on, the actor finds out whether their askers are still alive. */
export const CHECK_FROM = 64;
/** An asker idle for this long is checked, in ms: a waiting one repeats its request sooner. */
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

/** The answers to one asker. */
class Asker {
  readonly answers = new Map<number, Answer | "pending">();
  readonly ref: FencedRef;
  /** The asker's last deadline. */
  untilMs = 0;
  heardMs = 0;
  /** How long it may be idle before it is checked; doubles, so that a live asker costs few messages. */
  idleMs = IDLE_MS;

  constructor(ref: FencedRef) {
    this.ref = ref;
  }
}

/** The answers that one actor has given to asks that may be repeated. */
export class Answers {
  readonly #askers = new Map<string, Asker>();
  #settled = 0;
  #sweptMs = 0;
  #checkedMs = 0;

  get size(): number {
    return this.#settled;
  }

  /** Notes that an ask has come: `"new"` means it must be handled now. */
  begin(
    asker: FencedRef,
    { id, settledBelow, open, timeoutMs }: RepeatableAsk,
    nowMs: number,
  ): Answer | "pending" | "new" {
    if (nowMs - this.#sweptMs >= FORGET_AFTER_MS) this.#sweep(nowMs);
    let known = this.#askers.get(asker.incarnation);
    if (known === undefined) this.#askers.set(asker.incarnation, known = new Asker(asker));
    known.heardMs = nowMs;
    known.untilMs = Math.max(known.untilMs, nowMs + timeoutMs);
    const { answers } = known;
    this.#forget(answers, settledBelow, open);
    const answer = answers.get(id);
    if (answer !== undefined) return answer;
    answers.set(id, "pending");
    return "new";
  }

  /** Whether enough is kept to find out which askers have ended. */
  isIdleCheckDue(nowMs: number): boolean {
    return this.#settled >= CHECK_FROM && nowMs - this.#checkedMs >= CHECK_EVERY_MS;
  }

  /** Askers that have been idle for so long that they may have ended. */
  idleAskers(nowMs: number): FencedRef[] {
    this.#checkedMs = nowMs;
    const idle: FencedRef[] = [];
    for (const asker of this.#askers.values()) {
      if (nowMs - asker.heardMs < asker.idleMs) continue;
      asker.idleMs *= 2;
      if (idle.push(asker.ref) >= IDLE_MAX) break;
    }
    return idle;
  }

  /** Drops the answers of an asker that has ended. Its late envelopes must not be accepted any more. */
  forget(asker: string): void {
    const answers = this.#askers.get(asker)?.answers ?? [];
    for (const [, answer] of answers) if (answer !== "pending") this.#settled--;
    this.#askers.delete(asker);
  }

  /** Keeps the answer of an ask that `begin` called new. */
  settle(asker: string, id: number, answer: Answer): void {
    const answers = this.#askers.get(asker)?.answers;
    if (answers?.get(id) !== "pending") return;
    answers.set(id, answer);
    if (++this.#settled > ANSWERS_MAX) this.#makeRoom();
  }

  /** Forgets an ask, so that a repetition is handled again. */
  drop(asker: string, id: number): void {
    const answers = this.#askers.get(asker)?.answers;
    if (answers === undefined) return;
    if (typeof answers.get(id) === "object") this.#settled--;
    answers.delete(id);
    if (answers.size === 0) this.#askers.delete(asker);
  }

  #forget(
    answers: Map<number, Answer | "pending">,
    settledBelow: number,
    open: readonly number[] | undefined,
  ): void {
    const end = open?.at(-1) ?? settledBelow;
    for (const [id, answer] of answers) {
      // Ids come in nearly ascending order: the rest is kept, or dropped soon.
      if (id >= end) return;
      if (open !== undefined && open.includes(id)) continue;
      answers.delete(id);
      if (answer !== "pending") this.#settled--;
    }
  }

  /** Drops the answers of askers idle for long, which may have ended. */
  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const [asker, { answers, untilMs }] of this.#askers) {
      if (nowMs - untilMs < FORGET_AFTER_MS) continue;
      for (const [id, answer] of answers) if (answer !== "pending") this.drop(asker, id);
    }
  }

  #makeRoom(): void {
    const longestIdleFirst = [...this.#askers].sort(([, a], [, b]) => a.heardMs - b.heardMs);
    for (const [asker, { answers }] of longestIdleFirst) {
      for (const [id, answer] of answers) {
        if (this.#settled <= ANSWERS_LEFT) return;
        if (answer !== "pending") this.drop(asker, id);
      }
    }
  }
}
