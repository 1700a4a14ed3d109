/**
 * `fromId`: a dataset that was registered with a service before, by its id there.
 */
import { LeatError } from "../../core/error.ts";
import { invalidArgument } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { ElementIterator } from "../iterator.ts";
import {
  type Attributes,
  DatasetNode,
  iteratorFactory,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { ShardingPolicy } from "../sharding_policy.ts";
import { checkSpec, type ElementSpec } from "../spec.ts";
import { attributesOf, checkDistributeOptions, type DistributeOptions } from "./distribute.ts";

/** How a registered dataset is read. */
export interface FromIdOptions extends Omit<DistributeOptions, "service"> {
  /** What its elements are like, for `elementSpec` and the dtypes of batches; unknown without. */
  readonly spec?: ElementSpec;
}

export class FromIdNode extends DatasetNode {
  readonly options: DistributeOptions & FromIdOptions;
  readonly datasetId: string;

  constructor(options: DistributeOptions & FromIdOptions, datasetId: unknown) {
    super("fromId", []);
    this.options = {
      ...checkDistributeOptions("fromId", options),
      spec: checkSpec("fromId", options.spec),
    };
    if (typeof datasetId !== "string" || datasetId === "") {
      throw invalidArgument("fromId", "datasetId", "a non-empty string", datasetId);
    }
    this.datasetId = datasetId;
    if (options.processingMode === ShardingPolicy.DETERMINISTIC) {
      throw new LeatError(
        "unimplemented",
        `fromId: ${ShardingPolicy.DETERMINISTIC} needs the pipeline itself, part of which runs at the ` +
          `reader; distribute() the dataset instead`,
      );
    }
  }

  override get attributes(): Attributes {
    return { ...attributesOf(this.options), datasetId: this.datasetId };
  }

  override get elementSpec(): ElementSpec {
    return this.options.spec;
  }

  override get cardinality(): number {
    return this.options.numConsumers === undefined ? UNKNOWN_CARDINALITY : Infinity;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return iteratorFactory("fromId")(this, context);
  }
}

registerNode("fromId", {
  fromWire: ({ datasetId, ...options }) =>
    new FromIdNode(options as unknown as DistributeOptions, datasetId),
});
