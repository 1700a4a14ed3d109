/**
 * The sliding-window cache of a task: ephemeral data sharing (paper section 3.5). It keeps a window
 * over the task's stream of elements, and a pointer into it for each trainer.
 *
 * The trainer at the front makes the task produce and the window move. Elements that leave the
 * window at the back are gone, and a trainer that pointed there continues at the new back. So every
 * trainer sees a subsequence of one stream, in order, and a fast one never waits for a slow one.
 */
import { LeatError } from "../../core/error.ts";
import { Fifo } from "../../core/fifo.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { FencedRef, Ref } from "../runtime/ref.ts";
import { ElementFetcher, isSourceGone, refusedAnswer } from "../exactly_once/fetcher.ts";
import { FinalAcknowledgements } from "../exactly_once/final_acknowledgements.ts";
import { errorBytesOf } from "../exactly_once/kept_answers.ts";
import { PRESSED_IDLE_MS, type ReaderId, readerId, Repeats } from "../exactly_once/repeats.ts";
import {
  type BandwidthFigures,
  type CacheProtocol,
  type ElementAnswer,
  type ElementReaderProtocol,
  type ElementSourceProtocol,
  type ElementSourceStats,
  type GetElementRequest,
  isLast,
} from "../worker/protocol.ts";
import { cacheAccess } from "../worker/protocol_access.ts";
import { cacheChecks } from "../worker/protocol_check.ts";
import { SlidingWindow } from "./sliding_window.ts";

/** The cache's client id at its task; real clients count from 0. */
const CACHE_CLIENT_ID = -1;
/** How long one request to the task may stay open, in ms. */
const REQUEST_TIMEOUT_MS = 60_000;

/** Each item counts for at least this many bytes: the runtime's overhead of a small element. */
const ITEM_BYTES_MIN = 1_024;

/** How a cache is set up: plain data, so that it can be placed on any node. */
export interface CacheConfig {
  readonly task: FencedRef<ElementSourceProtocol>;
  /** Limit of the bytes in the window. The newest element stays even if it alone is larger. */
  readonly windowBytesMax: number;
  /** A larger element is an error. */
  readonly elementBytesMax: number;
}

export function createCache(
  context: ActorContext<CacheProtocol>,
  config: CacheConfig,
): Actor<CacheProtocol> {
  const cache = new Cache(context, config);
  return {
    handlers: {
      getElement: (request, { source }) =>
        cache.getElement(request, source as Ref<ElementReaderProtocol>),
      leave: ({ clientId }, { source }) => {
        cache.leave(clientId, source);
        return null;
      },
      stats: () => cache.stats(),
      askAgain: () => ({ acknowledged: cache.askAgain() }),
      isRead: () => cache.isRead(),
      haveAllLeft: () => cache.haveAllLeft(),
      resize: ({ windowBytesMax }) => {
        cache.resize(windowBytesMax);
        return null;
      },
    },
    checks: cacheChecks,
    access: cacheAccess,
    stop: () => cache.stop(),
  };
}

/** A request for an element that was not produced yet. */
interface Waiting {
  readonly reader: ReaderId;
  readonly answer: PromiseWithResolvers<ElementAnswer>;
}

class Cache {
  readonly #context: ActorContext;
  readonly #elementBytesMax: number;
  readonly #window: SlidingWindow<ElementAnswer>;
  readonly #repeats: Repeats;
  readonly #fetcher: ElementFetcher;
  readonly #acknowledging: FinalAcknowledgements;
  /** The trainer of each client that reads. */
  readonly #trainers = new Map<ReaderId, string>();
  /** By trainer. All of these trainers have read the newest element. */
  readonly #waiting = new Map<string, Fifo<Waiting>>();
  /** A trainer's newest figures on how it reads; undefined once they are sent to the task. */
  #bandwidth: BandwidthFigures | undefined;
  #fetching = false;
  #ended: ElementAnswer | undefined;
  #produced = 0;
  #hits = 0;
  #misses = 0;

  constructor(context: ActorContext, { task, windowBytesMax, elementBytesMax }: CacheConfig) {
    this.#context = context;
    this.#elementBytesMax = elementBytesMax;
    this.#window = new SlidingWindow(windowBytesMax);
    this.#repeats = new Repeats(context.world, {
      // The element that this client waited for then goes to another client of the same trainer.
      onEnded: (reader, why) => {
        this.#trainers.delete(reader);
        for (const trainerId of this.#waiting.keys()) {
          const isMeant = (one: Waiting) => one.reader === reader;
          this.#stopWaiting(trainerId, isMeant, ({ answer }) => answer.reject(why));
        }
      },
    });
    this.#fetcher = new ElementFetcher(context, task, {
      clientId: CACHE_CLIENT_ID,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
    });
    this.#acknowledging = new FinalAcknowledgements({
      context,
      repeats: this.#repeats,
      acknowledgedWithinMs: PRESSED_IDLE_MS,
    });
  }

  getElement(
    request: GetElementRequest,
    asker: Ref<ElementReaderProtocol>,
  ): ElementAnswer | Promise<ElementAnswer> {
    const { trainerId, bandwidth } = request;
    if (trainerId === undefined) {
      throw new LeatError(
        "invalid_argument",
        "This job shares its data: a request must have a trainerId",
      );
    }
    if (bandwidth !== undefined) this.#bandwidth = bandwidth;
    const reader = readerId(asker as Ref, request.clientId);
    try {
      return this.#repeats.answer(request, () => this.#take(request, trainerId, reader), asker);
    } finally {
      // The request may have acknowledged elements, so that there is space for more.
      this.#fetchIfAwaited();
    }
  }

  #fetchIfAwaited(): void {
    if (this.#waiting.size > 0) this.#fetch();
  }

  leave(clientId: number, asker: Ref): void {
    this.#repeats.leave(readerId(asker, clientId));
    this.#fetchIfAwaited();
  }

  /** See {@linkcode ElementFetcher.askAgain}. */
  askAgain(): number {
    return this.#fetcher.askAgain();
  }

  /** See `ProxyProtocol.isRead`. */
  isRead(): boolean {
    const isBehind = this.#trainers.entries().some(([reader, trainerId]) =>
      !this.#window.atFront(trainerId) && this.#repeats.hasHeard(reader, PRESSED_IDLE_MS)
    );
    return !isBehind && this.#acknowledging.settle();
  }

  /** See `ProxyProtocol.haveAllLeft`. */
  haveAllLeft(): boolean {
    const isRead = this.#trainers.keys().some((reader) =>
      this.#repeats.hasHeard(reader, PRESSED_IDLE_MS)
    );
    return this.#produced > 0 && !isRead;
  }

  resize(windowBytesMax: number): void {
    this.#window.resize(windowBytesMax);
  }

  stop(): void {
    this.#fetcher.leave();
    const error = new LeatError("not_found", "The cache has stopped");
    this.#endWaiting(({ answer }) => answer.reject(error));
  }

  stats(): ElementSourceStats {
    const { bytes, bytesMax, length, readers, skipped } = this.#window;
    const produced = this.#produced;
    const [hits, misses] = [this.#hits, this.#misses];
    const served = hits + misses;
    return {
      ...{ role: "cache", produced, served, bufferedBytes: bytes, bytesRead: 0, skipped },
      sharing: {
        windowBytes: bytes,
        windowBytesMax: bytesMax,
        elements: length,
        trainers: readers,
        ...{ produced, served, skipped, hits, misses },
      },
    };
  }

  #take(
    { waitMs }: GetElementRequest,
    trainerId: string,
    reader: ReaderId,
  ): ElementAnswer | Promise<ElementAnswer> {
    this.#trainers.set(reader, trainerId);
    const element = this.#read(trainerId);
    if (element !== undefined) {
      this.#hits++;
      return element;
    }
    if (this.#ended !== undefined) return this.#ended;
    const answer = Promise.withResolvers<ElementAnswer>();
    let waiting = this.#waiting.get(trainerId);
    if (waiting === undefined) this.#waiting.set(trainerId, waiting = new Fifo());
    const one = { reader, answer };
    waiting.push(one);
    this.#fetch();
    if (waitMs !== undefined) this.#answerLaterAfter(trainerId, one, waitMs);
    return answer.promise;
  }

  /** Answers `later` after `waitMs`, so that the client can ask other sources. */
  #answerLaterAfter(trainerId: string, one: Waiting, waitMs: number): void {
    const endsAtOnce = this.#context.world.fault("cache.later_at_once");
    const timer = this.#context.timer(endsAtOnce ? 0 : waitMs, () => {
      this.#stopWaiting(trainerId, (other) => other === one, ({ answer }) => {
        answer.resolve({ kind: "later" });
      });
    });
    one.answer.promise.then(() => timer.cancel(), () => timer.cancel());
  }

  #stopWaiting(
    trainerId: string,
    isMeant: (waiting: Waiting) => boolean,
    end: (waiting: Waiting) => void,
  ): void {
    const waiting = this.#waiting.get(trainerId);
    if (waiting === undefined) return;
    for (let left = waiting.length; left > 0; left--) {
      const one = waiting.shift()!;
      if (isMeant(one)) end(one);
      else waiting.push(one);
    }
    if (waiting.length === 0) this.#waiting.delete(trainerId);
  }

  /**
   * Reads from the window. A trainer that gets the newest element makes the cache fetch the next.
   */
  #read(trainerId: string): ElementAnswer | undefined {
    const read = this.#window.read(trainerId);
    if (read === undefined) return undefined;
    if (this.#window.atFront(trainerId)) this.#fetch();
    const { value, skipped } = read;
    return skipped === 0 ? value : { ...value, skipped } as ElementAnswer;
  }

  #fetch(): void {
    if (this.#fetching || this.#ended !== undefined || this.#repeats.isAtLimit) return;
    this.#fetching = true;
    this.#context.run(async () => {
      const element = await this.#fetchOne();
      this.#fetching = false;
      if (isLast(element)) this.#end(element);
      else {
        this.#extend(element);
        this.#answerWaiting();
      }
    });
  }

  async #fetchOne(): Promise<ElementAnswer> {
    try {
      const bandwidth = this.#bandwidth;
      this.#bandwidth = undefined;
      return await this.#fetcher.fetch(bandwidth === undefined ? {} : { bandwidth });
    } catch (error) {
      const failure = LeatError.from(error);
      if (failure.code === "cancelled") throw failure;
      if (!isSourceGone(failure)) return refusedAnswer(failure);
      this.#context.world.log("warn", `A sharing window cannot continue: ${failure.message}`);
      return { kind: "end" };
    }
  }

  #extend(answer: ElementAnswer): void {
    this.#produced++;
    if (answer.kind !== "element") {
      return this.#window.push(answer, Math.max(errorBytesOf(answer), ITEM_BYTES_MIN));
    }
    const { element } = answer;
    const { byteLength } = element;
    if (byteLength > this.#elementBytesMax) {
      return this.#window.push(tooLarge(byteLength, this.#elementBytesMax), ITEM_BYTES_MIN);
    }
    this.#window.push({ kind: "element", element }, Math.max(byteLength, ITEM_BYTES_MIN));
  }

  /** Gives each waiting trainer the new element, as the answer to its oldest request. */
  #answerWaiting(): void {
    for (const [trainerId, waiting] of this.#waiting) {
      const element = this.#read(trainerId);
      if (element === undefined) continue;
      this.#misses++;
      waiting.shift()!.answer.resolve(element);
      if (waiting.length === 0) this.#waiting.delete(trainerId);
    }
    this.#fetchIfAwaited();
  }

  #end(end: ElementAnswer): void {
    this.#ended = end;
    this.#endWaiting(({ answer }) => answer.resolve(end));
  }

  #endWaiting(end: (waiting: Waiting) => void): void {
    for (const waiting of this.#waiting.values()) {
      for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) end(one);
    }
    this.#waiting.clear();
  }
}

function tooLarge(bytes: number, bytesMax: number): ElementAnswer {
  const error = new LeatError(
    "invalid_argument",
    `An element of ${bytes} bytes is larger than its worker's windowBytesMax of ${bytesMax} bytes; ` +
      `give the worker a larger one, or make smaller batches`,
  );
  return { kind: "error", error: error.toWire() };
}
