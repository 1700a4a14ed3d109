/** Serves iterators over an edge. A trainer and its confined process use it, and do not trust each other. */
import { LeatError, type WireError } from "../../../core/error.ts";
import { fieldsOf } from "../../../core/tree.ts";
import type { ServedElements } from "../../../data/foreign/foreign_runners.ts";
import { END } from "../../../data/iterator.ts";
import { ReadingFailure, userErrorOf } from "../../../data/iterators/reading_failure.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import type { EdgeMethods } from "../edge.ts";

/** Limit of one side's open iterators. A pipeline needs few: one for each input of an operator. */
const ITERATORS_MAX = 256;

/** Limit of the elements in one answer. Only elements that are available at once are sent together. */
const TOGETHER_MAX = 256;
/** If an answer has more bytes than this, the next one has fewer elements. */
const TOGETHER_BYTES_MAX = 64 * 2 ** 10;
/** If making an answer took longer than this, in ms, the next one has fewer elements. */
const TOGETHER_MS_MAX = 2;

interface Served {
  readonly served: ServedElements;
  /** Elements per answer: halved after an answer beyond the limits, otherwise doubled. */
  together: number;
  /** Settles with the last call. The next call waits for it, so that calls run in order. */
  last: Promise<unknown>;
}

/** The open iterators of one side, by number. */
export class ElementServer {
  readonly #iterators = new Map<number, Served>();
  readonly #explain: (error: LeatError) => LeatError;
  #opened = 0;

  /** @param explain Converts an error for the other side. */
  constructor(explain: (error: LeatError) => LeatError = (error) => error) {
    this.#explain = explain;
  }

  /** Adds an iterator, and returns its number. */
  open(make: () => ServedElements): number {
    if (this.#iterators.size >= ITERATORS_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `A pipeline in a confined process has at most ${ITERATORS_MAX} open iterators (ITERATORS_MAX)`,
      );
    }
    const served = make();
    this.#iterators.set(++this.#opened, { served, together: 1, last: Promise.resolve() });
    return this.#opened;
  }

  methods(): EdgeMethods {
    return {
      iteratorNext: (request) => this.#inOrder(request, (_, __, open) => this.#next(open)),
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
        const { iterator } = fieldsOf(request);
        this.close(iterator as number);
        return null;
      },
    };
  }

  close(iterator: number): void {
    this.#iterators.get(iterator)?.served.elements.dispose();
    this.#iterators.delete(iterator);
  }

  dispose(): void {
    for (const iterator of [...this.#iterators.keys()]) this.close(iterator);
  }

  async #inOrder(
    request: unknown,
    call: (served: ServedElements, argument: unknown, open: Served) => Promise<unknown>,
  ): Promise<unknown> {
    const { iterator, argument } = fieldsOf(request);
    const open = this.#iterators.get(iterator as number);
    if (open === undefined) throw malformed();
    const answer = open.last.then(() => call(open.served, argument, open)).catch((error) => {
      throw this.#explain(LeatError.from(userErrorOf(error)));
    });
    open.last = answer.catch(() => {});
    return await answer;
  }

  async #next(open: Served): Promise<unknown> {
    const { elements } = open.served;
    try {
      const block: unknown[] = [];
      const startMs = performance.now();
      const count = elements.nextBlock(block, open.together);
      if (count > 0) return this.#blockOf(open, block.slice(0, count), startMs);
      const element = await elements.next();
      if (element === END) return { kind: "end", ...open.served.news(true) };
      return this.#blockOf(open, [element], startMs);
    } catch (error) {
      const wire = this.#wire(error);
      if (error instanceof ReadingFailure) return { kind: "failure", error: wire };
      return { kind: "answers", answers: [{ error: wire }], ...open.served.news(false) };
    }
  }

  #blockOf(open: Served, block: readonly unknown[], startMs: number): unknown {
    const news = open.served.news(false);
    try {
      const frame = frameOf(block);
      const isMuch = frame.byteLength > TOGETHER_BYTES_MAX ||
        performance.now() - startMs > TOGETHER_MS_MAX;
      open.together = isMuch
        ? Math.max(1, open.together >> 1)
        : Math.min(TOGETHER_MAX, open.together * 2);
      return { kind: "elements", frame, ...news };
    } catch {
      // An element cannot be encoded. Encoded one by one, only this element fails.
      return { kind: "answers", answers: block.map((element) => this.#answerOf(element)), ...news };
    }
  }

  #answerOf(element: unknown): unknown {
    try {
      return { frame: frameOf(element) };
    } catch (error) {
      return { error: this.#wire(error) };
    }
  }

  #wire(error: unknown): WireError {
    return this.#explain(LeatError.from(userErrorOf(error))).toWire();
  }
}

/** Encodes an element in a frame of its own, because an envelope has lower limits than a frame. */
function frameOf(element: unknown): Payload {
  return new Payload(encodeMessage(element, { roomForEnvelope: true }));
}

function malformed(): LeatError {
  return new LeatError("invalid_argument", "The request to an iterator is malformed");
}
