/** An iterator whose elements are made in another process. */
import { LeatError } from "../../core/error.ts";
import {
  type Outcome,
  restoreOutcome,
  type SavedOutcome,
  saveOutcome,
} from "../elements/answer.ts";
import type { IteratorContext } from "../context.ts";
import type { RemoteElements, RemoteStep } from "./foreign_runners.ts";
import { ElementIterator, END, type Pulled, type Token } from "../iterator.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";

interface State {
  /** The other process's state. This process never decodes it. */
  readonly remote: Uint8Array;
  /** Elements and errors that have arrived, but were not yet taken from this iterator. */
  readonly ahead: readonly SavedOutcome[];
}

/** Opens the iterator in the other process at the first call. */
export class RemoteIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #open: () => Promise<RemoteElements>;
  readonly #onNodeState: (nodeState: Uint8Array) => void;
  #opening: Promise<RemoteElements> | undefined;
  #ahead: Outcome[] = [];
  #ended = false;
  #failure: ReadingFailure | undefined;

  /** @param onNodeState Called when a step brings the state that the remote dataset nodes share. */
  constructor(
    context: IteratorContext,
    open: () => Promise<RemoteElements>,
    onNodeState: (nodeState: Uint8Array) => void = () => {},
  ) {
    super();
    this.#context = context;
    this.#open = open;
    this.#onNodeState = onNodeState;
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    if (this.#ahead.length > 0) return this.#give();
    if (this.#ended) return END;
    if (this.#failure !== undefined) throw this.#failure;
    return this.#step();
  }

  override async again(token: Token): Promise<unknown> {
    return await (await this.#remote()).again(token);
  }

  protected override async saveState(): Promise<State> {
    const remote = await (await this.#remote()).save();
    return { remote, ahead: this.#ahead.map((answer) => saveOutcome(answer)) };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    if (!("remote" in (state as object))) {
      throw new LeatError(
        "failed_precondition",
        "restore: the program that saved this iterator trusted the author of the pipeline, and " +
          "this program does not. Restore it with trustPipeline: true, or restart the epoch",
      );
    }
    const { remote, ahead } = state as State;
    await (await this.#remote()).restore(remote);
    this.#ahead = await Promise.all(ahead.map((saved) => restoreOutcome(saved, undefined)));
  }

  protected override release(): void {
    this.#opening?.then((remote) => remote.close(), () => {});
  }

  async #step(): Promise<unknown> {
    let step: RemoteStep;
    try {
      step = await this.#context.waitFor(this.#remote().then((remote) => remote.next()));
    } catch (error) {
      if (this.disposed) return END;
      throw this.#failure = ReadingFailure.of(error);
    }
    if (this.disposed) return END;
    if (step.shared !== undefined) this.#onNodeState(step.shared);
    if (step.kind === "answers") {
      this.#ahead = [...step.answers];
      return this.#give();
    }
    if (step.kind === "failure") throw this.#failure = ReadingFailure.of(step.error);
    if (step.isShare === true) this.#context.noteOtherConsumers();
    this.#ended = true;
    return END;
  }

  #give(): unknown {
    const { failed, value } = this.#ahead.shift()!;
    const { stats } = this.#context;
    if (failed) throw stats.failed(value);
    return stats.gave(value);
  }

  #remote(): Promise<RemoteElements> {
    return this.#opening ??= this.#begin();
  }

  async #begin(): Promise<RemoteElements> {
    const remote = await this.#open();
    if (this.disposed) remote.close();
    return remote;
  }
}
