/** Reads files one after the other. */
import { END, type Pulled } from "../../iterator.ts";
import { AGAIN, stepOn, type Stepping } from "../../iterators/stepping.ts";
import {
  FileSourceIterator,
  type OpenReading,
  type SavedReading,
  saveReading,
} from "./file_iterator.ts";

interface SequentialState {
  /** The file that is being read, if any. */
  readonly reading: SavedReading | undefined;
}

export class SequentialFiles extends FileSourceIterator implements Stepping {
  #reading: OpenReading | undefined;

  override next(): Pulled<unknown> {
    return stepOn(this, this.context.pacer);
  }

  step(): unknown {
    if (this.disposed) return END;
    const reading = this.#reading;
    if (reading !== undefined) {
      const element = reading.reader.step();
      return element instanceof Promise
        ? element.then((element) => this.#element(element))
        : this.#element(element);
    }
    const item = this.input.next();
    return item === END ? END : this.#openLater(item);
  }

  protected override ownState(): SequentialState {
    return { reading: this.#reading && saveReading(this.#reading) };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { reading } = state as SequentialState;
    if (reading !== undefined) this.#reading = await this.reopen(reading);
  }

  protected override release(): void {
    this.#reading = undefined;
    super.release();
  }

  #element(element: unknown): unknown {
    if (element === AGAIN) return AGAIN;
    if (this.#reading === undefined) return END; // disposed meanwhile
    if (element !== END) return this.give(element, this.#reading);
    this.closeReading(this.#reading);
    this.#reading = undefined;
    return AGAIN;
  }

  async #openLater(pulled: Pulled<unknown>): Promise<unknown> {
    const item = pulled instanceof Promise ? await this.arrival(pulled) : pulled;
    if (item === END || this.disposed) return END;
    this.#reading = await this.openReading(item);
    return AGAIN;
  }
}
