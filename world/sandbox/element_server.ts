/**
 * Iterators whose elements are taken over an edge: those that stay in a trainer, for the operators that
 * run apart from it, and these, for the trainer. Each side takes the asks of the other as a stranger's.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import type { ServedElements } from "../../data/foreign_runners.ts";
import { END } from "../../data/iterator.ts";
import { ReadingFailure, toldOf } from "../../data/reading_failure.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import type { EdgeMethods } from "./edge.ts";

/** Iterators that one side may hold open. A pipeline has few: one for each input of an operator. */
const ITERATORS_MAX = 256;

interface Served {
  readonly served: ServedElements;
  /** Calls are made in the order in which they were asked for. */
  last: Promise<unknown>;
}

/** See the module. */
export class ElementServer {
  readonly #iterators = new Map<number, Served>();
  readonly #explain: (error: LeatError) => LeatError;
  #opened = 0;

  /** @param explain What the other side is told of an error. */
  constructor(explain: (error: LeatError) => LeatError = (error) => error) {
    this.#explain = explain;
  }

  /** Takes an iterator in, and answers its name. */
  open(make: () => ServedElements): number {
    if (this.#iterators.size >= ITERATORS_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `A pipeline that runs apart holds at most ${ITERATORS_MAX} iterators (ITERATORS_MAX)`,
      );
    }
    const served = make();
    this.#iterators.set(++this.#opened, { served, last: Promise.resolve() });
    return this.#opened;
  }

  /** What the other side may ask. */
  methods(): EdgeMethods {
    return {
      iteratorNext: (request) => this.#inOrder(request, (served) => this.#next(served)),
      iteratorAgain: (request) =>
        this.#inOrder(
          request,
          async (served, token) => frameOf(await served.elements.again(token)),
        ),
      iteratorSave: (request) => this.#inOrder(request, (served) => served.save()),
      iteratorRestore: (request) =>
        this.#inOrder(request, async (served, state) => {
          if (!(state instanceof Uint8Array)) throw malformed();
          await served.restore(state);
          return null;
        }),
      iteratorClose: (request) => {
        const { iterator } = isPlainObject(request) ? request : {} as Record<string, unknown>;
        this.close(iterator as number);
        return null;
      },
    };
  }

  /** Disposes an iterator, if it is there. */
  close(iterator: number): void {
    this.#iterators.get(iterator)?.served.elements.dispose();
    this.#iterators.delete(iterator);
  }

  /** Disposes all of them. */
  dispose(): void {
    for (const iterator of [...this.#iterators.keys()]) this.close(iterator);
  }

  async #inOrder(
    request: unknown,
    call: (served: ServedElements, argument: unknown) => Promise<unknown>,
  ): Promise<unknown> {
    const { iterator, argument } = isPlainObject(request) ? request : {} as Record<string, unknown>;
    const open = this.#iterators.get(iterator as number);
    if (open === undefined) throw malformed();
    const answer = open.last.then(() => call(open.served, argument)).catch((error) => {
      throw this.#explain(LeatError.from(toldOf(error)));
    });
    open.last = answer.catch(() => {});
    return await answer;
  }

  async #next(served: ServedElements): Promise<unknown> {
    try {
      const element = await served.elements.next();
      const isEnd = element === END;
      const news = served.news(isEnd);
      return isEnd
        ? { kind: "end", ...news }
        : { kind: "element", frame: frameOf(element), ...news };
    } catch (error) {
      const isFinal = error instanceof ReadingFailure;
      const wire = this.#explain(LeatError.from(toldOf(error))).toWire();
      return { kind: "error", error: wire, ...(isFinal ? { isFinal } : {}) };
    }
  }
}

/** An element with bounds of its own: what carries it bounds an envelope more narrowly. */
function frameOf(element: unknown): Payload {
  return new Payload(encodeMessage(element, { roomForEnvelope: true }));
}

function malformed(): LeatError {
  return new LeatError("invalid_argument", "This is no request to an iterator");
}
