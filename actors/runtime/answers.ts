/**
 * Answers kept for askers that may ask again: a repeated ask gets the same answer and no second turn.
 *
 * @module
 */
import type { FailureEnvelope, ReplyEnvelope } from "./envelope.ts";

/** How many settled answers an actor keeps over all askers; beyond it the oldest is forgotten. */
const ANSWERS_MAX = 16_384;
/** How long after an asker's last deadline its answers are forgotten, in ms: it asks no more, if it lives. */
export const FORGET_AFTER_MS = 60_000;

/** What is to be said in answer, without the numbering of a particular envelope. */
export type Answer =
  | Pick<ReplyEnvelope, "kind" | "body">
  | Pick<FailureEnvelope, "kind" | "error">;

/** What an ask says of its being repeated. */
interface RepeatableAsk {
  readonly id: number;
  /** Asks before this one are settled. */
  readonly settledBelow: number;
  readonly timeoutMs: number;
}

/** What one asker was answered. */
class Source {
  readonly answers = new Map<number, Answer | "pending">();
  /** It has given up waiting by then. */
  untilMs = 0;
}

/** The answers one actor has given to asks that may be repeated. */
export class Answers {
  readonly #sources = new Map<string, Source>();
  #settled = 0;
  #sweptMs = 0;

  /** How many answers are kept. */
  get size(): number {
    return this.#settled;
  }

  /** Notes that an ask has come: `"new"` means it must be handled now. */
  begin(
    source: string,
    { id, settledBelow, timeoutMs }: RepeatableAsk,
    nowMs: number,
  ): Answer | "pending" | "new" {
    if (nowMs - this.#sweptMs >= FORGET_AFTER_MS) this.#sweep(nowMs);
    let asker = this.#sources.get(source);
    if (asker === undefined) this.#sources.set(source, asker = new Source());
    asker.untilMs = Math.max(asker.untilMs, nowMs + timeoutMs);
    const { answers } = asker;
    this.#forget(answers, settledBelow);
    const known = answers.get(id);
    if (known !== undefined) return known;
    answers.set(id, "pending");
    return "new";
  }

  /** Keeps the answer of an ask that `begin` called new. */
  settle(source: string, id: number, answer: Answer): void {
    const answers = this.#sources.get(source)?.answers;
    if (answers?.get(id) !== "pending") return;
    answers.set(id, answer);
    if (++this.#settled > ANSWERS_MAX) this.#forgetOldest();
  }

  /** Forgets an ask, so that a repetition is handled anew. */
  drop(source: string, id: number): void {
    const answers = this.#sources.get(source)?.answers;
    if (answers === undefined) return;
    if (typeof answers.get(id) === "object") this.#settled--;
    answers.delete(id);
    if (answers.size === 0) this.#sources.delete(source);
  }

  #forget(answers: Map<number, Answer | "pending">, settledBelow: number): void {
    for (const [id, answer] of answers) {
      // Ids come in nearly ascending order, so the rest is to be kept, or forgotten soon.
      if (id >= settledBelow) return;
      answers.delete(id);
      if (answer !== "pending") this.#settled--;
    }
  }

  /** Forgets what was answered to those that have not asked for long; they may have ended. */
  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const [source, { answers, untilMs }] of this.#sources) {
      if (nowMs - untilMs < FORGET_AFTER_MS) continue;
      for (const [id, answer] of answers) if (answer !== "pending") this.drop(source, id);
    }
  }

  #forgetOldest(): void {
    for (const [source, { answers }] of this.#sources) {
      for (const [id, answer] of answers) {
        if (answer === "pending") continue;
        this.drop(source, id);
        return;
      }
    }
  }
}
