/** The iterator of a registered dataset under DETERMINISTIC: it fetches the pipeline first. */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../../data/context.ts";
import { LateIterator } from "../../data/iterators/late_iterator.ts";
import type { FromIdNode } from "../../data/operators/sources/from_id.ts";
import { checkReproducible } from "../../data/deterministic/reproducible.ts";
import { checkReadsNoService } from "../../data/sharding/splits.ts";
import { deserializeGraph } from "../../data/wire.ts";
import type { ServiceAccess } from "./access.ts";
import { orderedIterator } from "./ordered_streams.ts";

/** The saved state: the iterator's own, and the fingerprint of the pipeline that it belongs to. */
interface State {
  readonly fingerprint: string;
  readonly iterator: unknown;
}

export class RegisteredOrderedIterator extends LateIterator {
  readonly #node: FromIdNode;
  /** The pipeline's fingerprint, once known. */
  #fingerprint = "";

  constructor(node: FromIdNode, context: IteratorContext, access: ServiceAccess) {
    super(context, async () => {
      const { options, datasetId } = node;
      const definition = await access.dataset(options.service, options, datasetId);
      const graph = deserializeGraph(definition.graph, { isOwn: node.trustsPipeline });
      checkReproducible(graph);
      checkReadsNoService(graph);
      this.#fingerprint = definition.fingerprint;
      const { compression } = definition;
      const asRegistered = compression === undefined ? options : { ...options, compression };
      return orderedIterator(graph, asRegistered, context, access);
    });
    this.#node = node;
  }

  protected override async saveState(): Promise<State> {
    const iterator = await super.saveState();
    return { fingerprint: this.#fingerprint, iterator };
  }

  protected override async restoreState(state: unknown): Promise<void> {
    const saved = state as State;
    await this.fetched();
    if (this.#fingerprint === saved.fingerprint) return await super.restoreState(saved.iterator);
    throw new LeatError(
      "failed_precondition",
      `The iterator was saved when the dataset "${this.#node.datasetId}" was another pipeline: one ` +
        `with fingerprint ${saved.fingerprint}, and now it is ${this.#fingerprint}. Register the former ` +
        "with the service",
    );
  }
}
