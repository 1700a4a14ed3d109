/** Reads files one after the other. */
import { then } from "../../../core/then.ts";
import { END, type Pulled } from "../../iterator.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import { AGAIN, stepOn, type Stepping } from "../../iterators/stepping.ts";
import {
  FileSourceIterator,
  type OpenReading,
  type SavedReading,
  saveReading,
} from "./file_iterator.ts";

interface SequentialState {
  /** The file that is being read, or the file that could not be opened because of the storage, if any. */
  readonly reading: SavedReading | { readonly unopened: unknown } | undefined;
}

export class SequentialFiles extends FileSourceIterator implements Stepping {
  #reading: OpenReading | undefined;
  #unopened: unknown;
  /** The failure of the storage. Nothing is read after it, so the state stays the position before it. */
  #failure: ReadingFailure | undefined;

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.disposed) return END;
    if (this.#failure !== undefined) throw this.#failure;
    try {
      const result = this.#reading === undefined ? this.#openNext() : this.#step(this.#reading);
      return result instanceof Promise ? result.catch((error) => this.#fail(error)) : result;
    } catch (error) {
      return this.#fail(error);
    }
  }

  protected override ownState(): SequentialState {
    if (this.#unopened !== undefined) return { reading: { unopened: this.#unopened } };
    return { reading: this.#reading && saveReading(this.#reading) };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { reading } = state as SequentialState;
    if (reading === undefined) return;
    if ("unopened" in reading) this.#unopened = reading.unopened;
    else this.#reading = await this.reopen(reading);
  }

  protected override release(): void {
    this.#reading = undefined;
    super.release();
  }

  #step({ reader }: OpenReading): unknown {
    return then(reader.step(), (element) => this.#element(element));
  }

  #element(element: unknown): unknown {
    if (element === AGAIN) return AGAIN;
    if (this.#reading === undefined) return END; // disposed meanwhile
    if (element !== END) return this.give(element, this.#reading);
    this.closeReading(this.#reading);
    this.#reading = undefined;
    return AGAIN;
  }

  #openNext(): unknown {
    const item = this.#unopened ?? this.input.next();
    return item === END ? END : this.#openLater(item);
  }

  async #openLater(pulled: Pulled<unknown>): Promise<unknown> {
    const item = pulled instanceof Promise ? await this.arrival(pulled) : pulled;
    if (item === END || this.disposed) return END;
    this.#unopened = undefined;
    try {
      this.#reading = await this.openReading(item);
      return AGAIN;
    } catch (error) {
      if (error instanceof ReadingFailure) this.#unopened = item;
      throw error;
    }
  }

  #fail(error: unknown): never {
    if (error instanceof ReadingFailure) this.#failure = error;
    throw error;
  }
}
