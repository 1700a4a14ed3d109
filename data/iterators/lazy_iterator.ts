/**
 * An iterator in place of one that has to be fetched first, because its pipeline comes from a
 * service, or its code is loaded on demand.
 */
import type { IteratorContext } from "../context.ts";
import { ElementIterator, END, type Pulled, type Token } from "../iterator.ts";
import type { IteratorFactory } from "../node.ts";
import { ReadingFailure } from "./reading_failure.ts";

/** Fetches the real iterator at the first call of `next()`, `save()` or `restore()`. */
export class LazyIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #fetch: () => Promise<ElementIterator>;
  #fetching: Promise<ElementIterator> | undefined;
  #fetched: ElementIterator | undefined;

  /** @param fetch Called once. When it fails, every `next()` fails. */
  constructor(context: IteratorContext, fetch: () => Promise<ElementIterator>) {
    super();
    this.#context = context;
    this.#fetch = fetch;
  }

  override next(): Pulled<unknown> {
    if (this.disposed) return END;
    // Not `??`: elements may be null.
    return this.#fetched === undefined ? this.#first() : this.#fetched.next();
  }

  override async again(token: Token): Promise<unknown> {
    return await (await this.fetched()).again(token);
  }

  protected override async saveState(): Promise<unknown> {
    return await (await this.fetched()).save();
  }

  protected override async restoreState(state: unknown): Promise<void> {
    await (await this.fetched()).restore(state);
  }

  protected override release(): void {
    this.#fetched?.dispose();
  }

  protected fetched(): Promise<ElementIterator> {
    return this.#fetching ??= this.#take();
  }

  async #first(): Promise<unknown> {
    try {
      return await (await this.#context.waitFor(this.fetched())).next();
    } catch (error) {
      if (this.disposed) return END;
      throw error;
    }
  }

  async #take(): Promise<ElementIterator> {
    const iterator = await this.#fetch().catch((error) => {
      throw ReadingFailure.of(error);
    });
    this.#fetched = iterator;
    if (this.disposed) iterator.dispose();
    return iterator;
  }
}

/**
 * A factory that is loaded when its first iterator begins. If loading fails, that iterator fails, and
 * the next one tries again.
 */
export function lazyFactory(load: () => Promise<IteratorFactory>): IteratorFactory {
  let loading: Promise<IteratorFactory> | undefined;
  const loaded = () =>
    loading ??= load().catch((error) => {
      loading = undefined;
      throw error;
    });
  return (node, context) => new LazyIterator(context, async () => (await loaded())(node, context));
}
