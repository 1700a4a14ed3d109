/**
 * The iterator of a registered dataset under DETERMINISTIC: part of the pipeline runs at its reader,
 * so the pipeline itself is asked of the dispatcher first.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../../data/context.ts";
import { ElementIterator, END, type Pulled } from "../../data/iterator.ts";
import type { FromIdNode } from "../../data/operators/from_id.ts";
import { checkReproducible } from "../../data/ordered/reproducible.ts";
import { checkUnserved } from "../../data/splits.ts";
import { deserializeGraph } from "../../data/wire.ts";
import type { ServiceAccess } from "./access.ts";
import { orderedIterator } from "./ordered_iterator.ts";

interface Opened {
  readonly iterator: ElementIterator;
  readonly fingerprint: string;
}

/** What is saved of it: small, as the place in the stream is. */
interface State {
  readonly fingerprint: string;
  readonly iterator: unknown;
}

/** See the module. */
export class RegisteredOrderedIterator extends ElementIterator {
  readonly #node: FromIdNode;
  readonly #context: IteratorContext;
  readonly #access: ServiceAccess;
  #opening: Promise<Opened> | undefined;
  #opened: Opened | undefined;
  /** The pipeline is not to be had, which was told. */
  #failed = false;

  constructor(node: FromIdNode, context: IteratorContext, access: ServiceAccess) {
    super();
    this.#node = node;
    this.#context = context;
    this.#access = access;
  }

  override next(): Pulled<unknown> {
    if (this.disposed || this.#failed) return END;
    return this.#opened?.iterator.next() ?? this.#first();
  }

  protected override async saveState(): Promise<State> {
    const { iterator, fingerprint } = await this.#open();
    return { fingerprint, iterator: await iterator.save() };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const saved = state as State;
    const { iterator, fingerprint } = await this.#open();
    if (fingerprint === saved.fingerprint) return await iterator.restore(saved.iterator);
    throw new LeatError(
      "failed_precondition",
      `The iterator was saved when the dataset "${this.#node.datasetId}" was another pipeline: one ` +
        `with fingerprint ${saved.fingerprint}, and now it is ${fingerprint}. Register the former ` +
        "with the service",
    );
  }

  protected override release(): void {
    this.#opened?.iterator.dispose();
  }

  async #first(): Promise<unknown> {
    try {
      const { iterator } = await this.#context.waitFor(this.#open());
      return await iterator.next();
    } catch (error) {
      if (this.disposed) return END;
      // What the stream itself fails with is about an element of it.
      this.#failed = this.#opened === undefined;
      throw error;
    }
  }

  #open(): Promise<Opened> {
    return this.#opening ??= this.#ask();
  }

  async #ask(): Promise<Opened> {
    const { options, datasetId } = this.#node;
    const definition = await this.#access.dataset(options.service, options, datasetId);
    const graph = deserializeGraph(definition.graph);
    checkReproducible(graph);
    checkUnserved(graph);
    const { compression } = definition;
    const asRegistered = compression === undefined ? options : { ...options, compression };
    const iterator = orderedIterator(graph, asRegistered, this.#context, this.#access);
    this.#opened = { iterator, fingerprint: definition.fingerprint };
    if (this.disposed) iterator.dispose();
    return this.#opened;
  }
}
