/** A dataset that a function made, of which a bounded number of answers is read ahead. */
import { Fifo } from "../../../core/fifo.ts";
import {
  type Outcome,
  restoreOutcome,
  type SavedOutcome,
  saveOutcome,
} from "../../elements/answer.ts";
import { END, type Token } from "../../iterator.ts";
import { isOfStream } from "../../iterators/reading_failure.ts";
import type { Opened, OpenedState } from "./opened.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";

/** An answer with the token of its element, if it has one. */
interface Fetched extends Outcome {
  readonly token?: Token | undefined;
}

export interface ReadAheadState {
  readonly opened: OpenedState | null;
  readonly answers: SavedOutcome[];
  readonly ended: boolean;
}

/** One dataset: from the call that makes it until its last answer is taken. */
export class ReadAhead {
  /** The dataset; `undefined` until it is made, and forever if that failed. */
  opened: Opened | undefined;
  /** Whether the call that makes it, or a fetch, is in flight. */
  isBusy = false;
  /** Answers that were fetched and not taken yet, in order. */
  readonly answers = new Fifo<Fetched>();
  #ended = false;

  /** Whether making the dataset failed: the error is its only answer. */
  get failedToOpen(): boolean {
    return this.#ended && this.opened === undefined;
  }

  /** Whether there is no dataset, because reading the input failed. That is the only answer. */
  get isUnread(): boolean {
    return this.failedToOpen && this.answers.length > 0 && !isOfStream(this.answers.first!);
  }

  /** Whether all answers were taken and no more will come. */
  get isOver(): boolean {
    return this.#ended && this.answers.length === 0;
  }

  /** Whether one more answer may be fetched now. */
  canFetch(answersMax: number): boolean {
    return !this.isBusy && !this.#ended && this.opened !== undefined &&
      this.answers.length < answersMax;
  }

  /** The dataset has given an element, or its end. */
  arrive(element: unknown): void {
    if (element === END) {
      this.#ended = true;
      this.opened!.iterator.dispose();
    } else {
      this.answers.push({
        failed: false,
        value: element,
        token: this.opened!.iterator.token(),
      });
    }
  }

  /** An element failed, or the dataset could not be made. */
  fail(error: unknown): void {
    this.answers.push({ failed: true, value: error });
    if (this.opened === undefined) this.#ended = true;
  }

  async save(): Promise<ReadAheadState> {
    return {
      opened: await this.opened?.save() ?? null,
      answers: [...this.answers].filter(isOfStream)
        .map((answer) => saveOutcome(answer, answer.token)),
      ended: this.#ended,
    };
  }

  /** `open` makes the dataset again. */
  static async restore(
    state: ReadAheadState,
    open: (state: OpenedState) => Promise<Opened>,
  ): Promise<ReadAhead> {
    const { opened, answers, ended } = wholeState(state);
    const restored = new ReadAhead();
    restored.#ended = ended;
    if (opened !== null) restored.opened = await open(opened);
    for (const saved of answers) {
      const answer = await restoreOutcome(saved, restored.opened?.iterator);
      restored.answers.push("token" in saved ? { ...answer, token: saved.token } : answer);
    }
    return restored;
  }

  dispose(): void {
    this.opened?.iterator.dispose();
  }
}
