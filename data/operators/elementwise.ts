/** Base of operators that take the elements of their input one after the other. */
import { END, type Token } from "../iterator.ts";
import { SteppingIterator } from "./unary.ts";

/** The iterator of such an operator. Disposing itself ends it. */
export abstract class ElementwiseIterator extends SteppingIterator {
  override step(): unknown {
    if (this.disposed) return END;
    const element = this.input.next();
    return element instanceof Promise ? this.#later(element) : this.#take(element);
  }

  /** Handles the next element, or `END`; returns the same kinds of values as `step()`. */
  protected abstract accept(element: unknown): unknown;

  async #later(pending: Promise<unknown>): Promise<unknown> {
    const element = await this.arrival(pending, 0);
    return this.disposed ? END : this.#take(element);
  }

  #take(element: unknown): unknown {
    try {
      const answer = this.accept(element);
      if (answer instanceof Promise) answer.catch((error) => this.stats.failed(error));
      return answer;
    } catch (error) {
      throw this.stats.failed(error);
    }
  }
}

/** Gives elements of its input unchanged, and their tokens. */
export abstract class PassingIterator extends ElementwiseIterator {
  override token(): Token | undefined {
    return this.input.token();
  }

  override again(token: Token): unknown {
    return this.input.again(token);
  }
}
