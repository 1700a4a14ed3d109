/**
 * The sliding-window cache before a task: ephemeral data sharing (paper section 3.5). It keeps a
 * window over the task's stream of elements and a pointer into it for each trainer.
 *
 * The trainer at the front makes the task produce and the window move; elements that fall off its
 * back are gone, and a trainer that pointed there goes on at the new back. So every trainer sees a
 * subsequence of one stream, in order, and a fast one never waits for a slow one.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { Actor, ActorContext } from "../runtime/actor.ts";
import type { FencedRef } from "../runtime/ref.ts";
import { ElementFetcher } from "../elements/fetcher.ts";
import type {
  ElementAnswer,
  ElementSourceProtocol,
  GetElementRequest,
} from "../worker/protocol.ts";
import { Repeats } from "../elements/repeats.ts";
import { SlidingWindow } from "./sliding_window.ts";

/** The cache's client id towards its task; real clients count from 0. */
const CACHE_CLIENT_ID = -1;
/** How long one request to the task may stay open, in ms. */
const REQUEST_TIMEOUT_MS = 60_000;

/** What an element that failed takes in the window, roughly: a stream of them is bounded too. */
const ERROR_BYTES = 1_024;

/** How a cache is set up: plain data, so that it can be placed on any node. */
export interface CacheConfig {
  readonly task: FencedRef<ElementSourceProtocol>;
  /** How many bytes of elements the window may hold. */
  readonly windowBytesMax: number;
}

/** Makes the cache actor. */
export function createCache(
  context: ActorContext<ElementSourceProtocol>,
  config: CacheConfig,
): Actor<ElementSourceProtocol> {
  const cache = new Cache(context, config);
  return {
    handlers: {
      getElement: (request) => cache.getElement(request),
      leave: ({ clientId }) => {
        cache.leave(clientId);
        return null;
      },
      stats: () => cache.stats(),
    },
    stop: () => cache.stop(),
  };
}

interface Waiting {
  readonly trainerId: string;
  readonly answer: PromiseWithResolvers<ElementAnswer>;
}

class Cache {
  readonly #context: ActorContext;
  readonly #window: SlidingWindow<ElementAnswer>;
  readonly #repeats: Repeats;
  readonly #fetcher: ElementFetcher;
  #waiting: Waiting[] = [];
  #fetching = false;
  #ended: ElementAnswer | undefined;
  #produced = 0;
  #served = 0;

  constructor(context: ActorContext, { task, windowBytesMax }: CacheConfig) {
    this.#context = context;
    this.#window = new SlidingWindow(windowBytesMax);
    this.#repeats = new Repeats(context.world);
    this.#fetcher = new ElementFetcher(context, task, {
      clientId: CACHE_CLIENT_ID,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
    });
  }

  getElement(request: GetElementRequest): ElementAnswer | Promise<ElementAnswer> {
    const { trainerId } = request;
    if (trainerId === undefined) {
      throw new LeatError(
        "invalid_argument",
        "This job shares its data: a request must say trainerId",
      );
    }
    return this.#repeats.answer(request, () => this.#read(trainerId));
  }

  leave(clientId: number): void {
    this.#repeats.leave(clientId);
  }

  stop(): void {
    this.#fetcher.leave();
    const error = new LeatError("not_found", "The cache has stopped");
    for (const { answer } of this.#waiting) answer.reject(error);
    this.#waiting = [];
  }

  stats() {
    return {
      role: "cache" as const,
      produced: this.#produced,
      served: this.#served,
      bufferedBytes: this.#window.bytes,
      bytesRead: 0,
      skipped: this.#window.skipped,
    };
  }

  #read(trainerId: string): ElementAnswer | Promise<ElementAnswer> {
    const element = this.#window.read(trainerId);
    if (element !== undefined) {
      this.#served++;
      // Whoever takes the newest element is at the front: the next one is made while it trains.
      if (this.#window.atFront(trainerId)) this.#fetch();
      return element;
    }
    if (this.#ended !== undefined) return this.#ended;
    const answer = Promise.withResolvers<ElementAnswer>();
    this.#waiting.push({ trainerId, answer });
    this.#fetch();
    return answer.promise;
  }

  #fetch(): void {
    if (this.#fetching || this.#ended !== undefined) return;
    this.#fetching = true;
    this.#context.run(async () => {
      const element = await this.#fetchOne();
      this.#fetching = false;
      if (element.kind === "end") this.#ended = element;
      else this.#extend(element);
      this.#answerWaiting();
    });
  }

  async #fetchOne(): Promise<ElementAnswer> {
    try {
      return await this.#fetcher.fetch();
    } catch (error) {
      const failure = LeatError.from(error);
      if (failure.code === "cancelled") throw failure;
      this.#context.world.log("warn", `A sharing window ends: ${failure.message}`);
      return { kind: "end" };
    }
  }

  #extend(element: ElementAnswer): void {
    this.#produced++;
    if (element.kind !== "element") return this.#extendByError(element);
    const bytes = element.element.byteLength;
    if (bytes <= this.#window.bytesMax) return this.#window.push(element, bytes);
    const error = new LeatError(
      "invalid_argument",
      `An element of ${bytes} bytes is larger than the sharing window of ${this.#window.bytesMax} bytes; ` +
        `give the workers a larger windowBytesMax, or make smaller batches`,
    );
    this.#extendByError({ kind: "error", error: error.toWire() });
  }

  #extendByError(error: ElementAnswer): void {
    this.#window.push(error, Math.min(ERROR_BYTES, this.#window.bytesMax));
  }

  #answerWaiting(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { trainerId, answer } of waiting) {
      try {
        answer.resolve(this.#read(trainerId));
      } catch (error) {
        answer.reject(error);
      }
    }
  }
}
