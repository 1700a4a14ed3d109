/**
 * Answers kept for askers that may ask again: a repeated ask gets the same answer and no second turn.
 *
 * @module
 */
import type { FailureEnvelope, ReplyEnvelope } from "./envelope.ts";

/** How many settled answers an actor keeps over all askers; beyond it the oldest is forgotten. */
const ANSWERS_MAX = 16_384;

/** What is to be said in answer, without the numbering of a particular envelope. */
export type Answer =
  | Pick<ReplyEnvelope, "kind" | "body">
  | Pick<FailureEnvelope, "kind" | "error">;

/** The answers one actor has given to asks that may be repeated. */
export class Answers {
  readonly #sources = new Map<string, Map<number, Answer | "pending">>();
  #settled = 0;

  /** Notes that an ask has come: `"new"` means it must be handled now. */
  begin(source: string, id: number, settledBelow: number): Answer | "pending" | "new" {
    let answers = this.#sources.get(source);
    if (answers === undefined) {
      answers = new Map();
      this.#sources.set(source, answers);
    }
    this.#forget(answers, settledBelow);
    const known = answers.get(id);
    if (known !== undefined) return known;
    answers.set(id, "pending");
    return "new";
  }

  /** Keeps the answer of an ask that `begin` called new. */
  settle(source: string, id: number, answer: Answer): void {
    const answers = this.#sources.get(source);
    if (answers?.get(id) !== "pending") return;
    answers.set(id, answer);
    if (++this.#settled > ANSWERS_MAX) this.#forgetOldest();
  }

  /** Forgets an ask, so that a repetition is handled anew. */
  drop(source: string, id: number): void {
    const answers = this.#sources.get(source);
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

  #forgetOldest(): void {
    for (const [source, answers] of this.#sources) {
      for (const [id, answer] of answers) {
        if (answer === "pending") continue;
        this.drop(source, id);
        return;
      }
    }
  }
}
