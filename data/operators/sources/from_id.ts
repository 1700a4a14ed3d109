/** `fromId`: a dataset registered with a service, by its id there. */
import { checkBoolean, invalidArgument, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { ElementIterator, END, type Pulled } from "../../iterator.ts";
import {
  type Attributes,
  DatasetNode,
  registerNode,
  servedIterator,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { SharedGraphs } from "../../checkpoint/shared_state.ts";
import { ShardingPolicy } from "../../sharding/sharding_policy.ts";
import { checkSpec, type ElementSpec } from "../../elements/spec.ts";
import { SpecCheck } from "../../elements/spec_check.ts";
import {
  attributesOf,
  checkDistributeOptions,
  type DistributeOptions,
  DISTRIBUTION,
} from "../distribute.ts";

/** How a registered dataset is read. Its compression was chosen at registration. */
export interface FromIdOptions extends Omit<DistributeOptions, "service" | "compression"> {
  /** The spec of its elements, for `elementSpec` and the dtypes of batches. Default: unknown. */
  readonly spec?: ElementSpec;
  /**
   * Whether the author of the registered pipeline is trusted like the author of this program. Under
   * DETERMINISTIC, operators that cannot run split by split run here: with `true` their functions
   * get all permissions of this process, otherwise they run in a confined process. Default: false.
   */
  readonly trustPipeline?: boolean;
}

export class FromIdNode extends DatasetNode {
  static readonly options = optionsOf<FromIdOptions>("fromId", {
    spec: true,
    trustPipeline: true,
    ...DISTRIBUTION,
  });
  override readonly division = "served";
  readonly options: DistributeOptions & FromIdOptions;
  readonly datasetId: string;
  readonly #readerGraphs = new SharedGraphs();
  /** Not an attribute: the sender of a pipeline cannot declare it trusted. */
  readonly trustsPipeline: boolean;

  constructor(
    { trustPipeline, ...options }: DistributeOptions & FromIdOptions,
    datasetId: unknown,
  ) {
    super("fromId", []);
    this.trustsPipeline = checkBoolean("fromId", "trustPipeline", trustPipeline, false);
    this.options = {
      ...checkDistributeOptions("fromId", options),
      spec: checkSpec("fromId", options.spec),
    };
    if (typeof datasetId !== "string" || datasetId === "") {
      throw invalidArgument("fromId", "datasetId", "a non-empty string", datasetId);
    }
    this.datasetId = datasetId;
  }

  override get attributes(): Attributes {
    return { ...attributesOf(this.options), datasetId: this.datasetId };
  }

  /** A restored pipeline may have another service's address and other options of the reader. */
  override get checkpointAttributes(): Attributes {
    const { processingMode = ShardingPolicy.OFF, numConsumers, consumerIndex } = attributesOf(
      this.options,
    );
    return { processingMode, numConsumers, consumerIndex, datasetId: this.datasetId };
  }

  override get elementSpec(): ElementSpec {
    return this.options.spec;
  }

  override get cardinality(): number {
    const { numConsumers, processingMode } = this.options;
    const isInRounds = numConsumers !== undefined &&
      processingMode !== ShardingPolicy.DETERMINISTIC;
    return isInRounds ? Infinity : UNKNOWN_CARDINALITY;
  }

  /** Used under DETERMINISTIC: the graphs that run at the reader. */
  override get shared(): SharedGraphs {
    return this.#readerGraphs;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    const elements = servedIterator(this, context);
    const check = SpecCheck.of(this.options.spec);
    return check === undefined ? elements : new CheckedIterator(elements, check, context);
  }
}

registerNode("fromId", {
  fromWire: ({ datasetId, trustPipeline: _, ...options }) =>
    new FromIdNode(options as unknown as DistributeOptions, datasetId),
});

/** Checks the service's elements against the declared spec. */
class CheckedIterator extends ElementIterator {
  readonly #elements: ElementIterator;
  readonly #check: SpecCheck;
  readonly #context: IteratorContext;

  constructor(elements: ElementIterator, check: SpecCheck, context: IteratorContext) {
    super();
    this.#elements = elements;
    this.#check = check;
    this.#context = context;
  }

  override next(): Pulled<unknown> {
    const element = this.#elements.next();
    return element instanceof Promise
      ? element.then((element) => this.#checked(element))
      : this.#checked(element);
  }

  #checked(element: unknown): unknown {
    if (element === END || this.#check.fits(element)) return element;
    const { stats } = this.#context;
    throw stats.failed(
      this.#check.failure(element, "fromId: an element of the registered dataset"),
    );
  }

  protected override saveState(): Promise<unknown> {
    return this.#elements.save();
  }

  protected override restoreState(state: unknown): Promise<void> {
    return this.#elements.restore(state);
  }

  protected override release(): void {
    this.#elements.dispose();
  }
}
