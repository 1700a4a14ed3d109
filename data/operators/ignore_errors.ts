/** `ignoreErrors`: drops elements that fail, within an error budget. */
import { LeatError, type WireError } from "../../core/error.ts";
import { restoreError } from "../elements/answer.ts";
import { checkBoolean, checkInteger, invalidArgument, optionsOf } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { END, type Token } from "../iterator.ts";
import { type Attributes, type Changeable, type DatasetNode, registerNode } from "../node.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";
import { AGAIN } from "../iterators/stepping.ts";
import { ElementsOfInputNode, SteppingIterator } from "./unary.ts";

const KIND = "ignoreErrors";

/** What `ignoreErrors` tolerates. */
export interface IgnoreErrorsOptions {
  /** Writes every error to the host's log; default false. */
  readonly logWarning?: boolean | undefined;
  /**
   * At most this many errors in a pass over the input; default: any number. Each repetition of a
   * `repeat` that comes after is a pass of its own.
   */
  readonly maxErrors?: number | undefined;
  /**
   * At most this share, from 0 to 1, of all elements of a pass; checked from the hundredth on and at
   * the end. Default 1.
   */
  readonly maxFraction?: number | undefined;
}

/** Elements and errors needed before their ratio is checked. */
const SAMPLE_MIN = 100;

export class IgnoreErrorsNode extends ElementsOfInputNode {
  static readonly options = optionsOf<IgnoreErrorsOptions>("ignoreErrors", {
    logWarning: true,
    maxErrors: true,
    maxFraction: true,
  });
  override readonly division = "whole";
  override readonly countsWholeInput: boolean;
  readonly logWarning: boolean;
  readonly maxErrors: number;
  readonly maxFraction: number;

  constructor(
    input: DatasetNode,
    { logWarning, maxErrors = Infinity, maxFraction = 1 }: IgnoreErrorsOptions = {},
  ) {
    super(KIND, input);
    this.logWarning = checkBoolean(KIND, "logWarning", logWarning, false);
    this.maxErrors = maxErrors === Infinity
      ? Infinity
      : checkInteger(KIND, "maxErrors", maxErrors, 0);
    if (typeof maxFraction !== "number" || !(maxFraction >= 0 && maxFraction <= 1)) {
      throw invalidArgument(KIND, "maxFraction", "a number from 0 to 1", maxFraction);
    }
    this.maxFraction = maxFraction;
    this.countsWholeInput = this.maxErrors < Infinity || maxFraction < 1;
  }

  override get attributes(): Attributes {
    const { logWarning, maxErrors, maxFraction } = this;
    return { logWarning, maxErrors, maxFraction };
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  override makeIterator(context: IteratorContext): IgnoreErrorsIterator {
    return new IgnoreErrorsIterator(context, this);
  }
}

registerNode(KIND, { fromWire: (a, [input]) => new IgnoreErrorsNode(input!, a) });

interface IgnoreErrorsState {
  readonly elements: number;
  readonly errors: number;
  readonly last: WireError | null;
}

/** If more elements fail than are allowed, throws one last error and ends. */
class IgnoreErrorsIterator extends SteppingIterator {
  readonly #node: IgnoreErrorsNode;
  #elements = 0;
  #errors = 0;
  #last: LeatError | undefined;

  constructor(context: IteratorContext, node: IgnoreErrorsNode) {
    super(context);
    this.#node = node;
  }

  /** A block holds no failed elements. */
  override nextBlock(into: unknown[], count: number): number {
    const given = this.input.nextBlock(into, count);
    if (given > 0) {
      this.#elements += given;
      this.stats.gaveBlock(into, given);
    }
    return given;
  }

  override step(): unknown {
    if (this.disposed) return END;
    let element: unknown;
    try {
      element = this.input.next();
    } catch (error) {
      return this.#ignore(error);
    }
    return element instanceof Promise ? this.#later(element) : this.#pass(element);
  }

  async #later(pending: Promise<unknown>): Promise<unknown> {
    let element: unknown;
    try {
      element = await this.arrival(pending);
    } catch (error) {
      return this.disposed ? END : this.#ignore(error);
    }
    return this.disposed ? END : this.#pass(element);
  }

  override token(): Token | undefined {
    return this.input.token();
  }

  override again(token: Token): unknown {
    return this.input.again(token);
  }

  #pass(element: unknown): unknown {
    if (element === END) {
      if (this.#fraction > this.#node.maxFraction) throw this.#spent();
      return END;
    }
    this.#elements++;
    return this.stats.gave(element);
  }

  #ignore(error: unknown): typeof AGAIN {
    // If a `ReadingFailure` were dropped, it would look like the end of the data.
    if (error instanceof ReadingFailure) throw error;
    const { logWarning, maxErrors, maxFraction } = this.#node;
    this.#last = LeatError.from(error);
    this.#errors++;
    this.stats.failed(this.#last);
    if (logWarning) {
      const { code, message } = this.#last;
      this.context.host.warn(`${KIND}: left out an element that failed: ${code}: ${message}`);
    }
    const isSample = this.#elements + this.#errors >= SAMPLE_MIN;
    if (this.#errors > maxErrors || (isSample && this.#fraction > maxFraction)) throw this.#spent();
    return AGAIN;
  }

  get #fraction(): number {
    return this.#errors === 0 ? 0 : this.#errors / (this.#errors + this.#elements);
  }

  #spent(): LeatError {
    const { maxErrors, maxFraction } = this.#node;
    const allowed = this.#errors > maxErrors
      ? `maxErrors allows ${maxErrors}`
      : `maxFraction allows ${maxFraction} of them`;
    const last = this.#last!;
    this.dispose();
    return new LeatError(
      "resource_exhausted",
      `${KIND}: ${this.#errors} of ${this.#errors + this.#elements} elements failed, but ` +
        `${allowed}. The last of them: ${last.message}`,
      { cause: last, details: { errors: this.#errors, elements: this.#elements } },
    );
  }

  protected override ownState(): IgnoreErrorsState {
    return {
      elements: this.#elements,
      errors: this.#errors,
      last: this.#last?.toWire() ?? null,
    };
  }

  protected override restoreOwn(state: unknown): void {
    const { elements, errors, last } = state as IgnoreErrorsState;
    this.#elements = elements;
    this.#errors = errors;
    this.#last = last === null ? undefined : restoreError(last);
  }
}
