/** Answers kept for askers that may repeat a request, which is then not handled again. */
import type { AskEnvelope, FailureEnvelope, ReplyEnvelope } from "../envelope.ts";
import type { FencedRef } from "../ref.ts";

/** Settled answers that an actor keeps; the oldest of the longest idle askers are dropped. */
const ANSWERS_MAX = 16_384;
const ANSWERS_LEFT = 15_360;
/** An asker's answers are dropped this long after its last deadline, in ms: it repeats nothing any more. */
export const FORGET_AFTER_MS = 60_000;
/** From this many answers on, the actor finds out whether their askers are still alive. */
export const LOOK_FROM = 64;
/** An asker idle for this long is checked, in ms: a waiting one repeats its request sooner. */
export const QUIET_MS = 3_000;
/** How often idle askers are looked for, in ms, and how many of them at a time. */
const LOOK_EVERY_MS = 1_000;
const QUIET_MAX = 256;

/** An answer without the numbering of a particular envelope. */
export type Answer =
  | Pick<ReplyEnvelope, "kind" | "body">
  | Pick<FailureEnvelope, "kind" | "error">;

/** The fields of an ask that concern repetition. */
export type RepeatableAsk = Pick<AskEnvelope, "id" | "timeoutMs" | "open"> & {
  readonly settledBelow: number;
};

/** The answers to one asker. */
class Source {
  readonly answers = new Map<number, Answer | "pending">();
  readonly ref: FencedRef;
  /** The asker's last deadline. */
  untilMs = 0;
  heardMs = 0;
  /** How long it may be idle before it is checked; doubles, so that a live asker costs few messages. */
  patienceMs = QUIET_MS;

  constructor(ref: FencedRef) {
    this.ref = ref;
  }
}

/** The answers that one actor has given to asks that may be repeated. */
export class Answers {
  readonly #sources = new Map<string, Source>();
  #settled = 0;
  #sweptMs = 0;
  #lookedMs = 0;

  get size(): number {
    return this.#settled;
  }

  /** Notes that an ask has come: `"new"` means it must be handled now. */
  begin(
    source: FencedRef,
    { id, settledBelow, open, timeoutMs }: RepeatableAsk,
    nowMs: number,
  ): Answer | "pending" | "new" {
    if (nowMs - this.#sweptMs >= FORGET_AFTER_MS) this.#sweep(nowMs);
    let asker = this.#sources.get(source.incarnation);
    if (asker === undefined) this.#sources.set(source.incarnation, asker = new Source(source));
    asker.heardMs = nowMs;
    asker.untilMs = Math.max(asker.untilMs, nowMs + timeoutMs);
    const { answers } = asker;
    this.#forget(answers, settledBelow, open);
    const known = answers.get(id);
    if (known !== undefined) return known;
    answers.set(id, "pending");
    return "new";
  }

  /** Whether enough is kept to find out which askers have ended. */
  isLookDue(nowMs: number): boolean {
    return this.#settled >= LOOK_FROM && nowMs - this.#lookedMs >= LOOK_EVERY_MS;
  }

  /** Askers that have been idle for so long that they may have ended. */
  quiet(nowMs: number): FencedRef[] {
    this.#lookedMs = nowMs;
    const quiet: FencedRef[] = [];
    for (const source of this.#sources.values()) {
      if (nowMs - source.heardMs < source.patienceMs) continue;
      source.patienceMs *= 2;
      if (quiet.push(source.ref) >= QUIET_MAX) break;
    }
    return quiet;
  }

  /** Drops the answers of an asker that has ended. Its late envelopes must not be accepted any more. */
  forget(source: string): void {
    const answers = this.#sources.get(source)?.answers ?? [];
    for (const [, answer] of answers) if (answer !== "pending") this.#settled--;
    this.#sources.delete(source);
  }

  /** Keeps the answer of an ask that `begin` called new. */
  settle(source: string, id: number, answer: Answer): void {
    const answers = this.#sources.get(source)?.answers;
    if (answers?.get(id) !== "pending") return;
    answers.set(id, answer);
    if (++this.#settled > ANSWERS_MAX) this.#makeRoom();
  }

  /** Forgets an ask, so that a repetition is handled again. */
  drop(source: string, id: number): void {
    const answers = this.#sources.get(source)?.answers;
    if (answers === undefined) return;
    if (typeof answers.get(id) === "object") this.#settled--;
    answers.delete(id);
    if (answers.size === 0) this.#sources.delete(source);
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
    for (const [source, { answers, untilMs }] of this.#sources) {
      if (nowMs - untilMs < FORGET_AFTER_MS) continue;
      for (const [id, answer] of answers) if (answer !== "pending") this.drop(source, id);
    }
  }

  #makeRoom(): void {
    const quietFirst = [...this.#sources].sort(([, a], [, b]) => a.heardMs - b.heardMs);
    for (const [source, { answers }] of quietFirst) {
      for (const [id, answer] of answers) {
        if (this.#settled <= ANSWERS_LEFT) return;
        if (answer !== "pending") this.drop(source, id);
      }
    }
  }
}
