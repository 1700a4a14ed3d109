/**
 * `distribute`: the point where a pipeline leaves its process. What is before it runs in workers of
 * a service; its iterator is provided from outside of the data engine.
 */
import { LeatError } from "../../core/error.ts";
import { checkInteger, invalidArgument } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { ElementIterator } from "../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  iteratorFactory,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../node.ts";
import { ShardingPolicy } from "../sharding_policy.ts";
import type { ElementSpec } from "../spec.ts";
import { UnaryNode } from "./unary.ts";

/** How a dataset is distributed. */
export interface DistributeOptions {
  /** The dispatcher: `ws://host:port`, `wss://…`, or something that has such an address. */
  readonly service: string | { readonly address: string };
  /** How the workers share the work; default OFF. */
  readonly processingMode?: ShardingPolicy;
  /** Clients that name the same job share its elements. */
  readonly jobName?: string;
  /** Which consumer of a coordinated job this is, from 0; needs `numConsumers` and `jobName`. */
  readonly consumerIndex?: number;
  /** How many consumers read the job in rounds; needs `consumerIndex` and `jobName`. */
  readonly numConsumers?: number;
  /** Shares what workers produce with other trainers, each reading all that it can keep up with. */
  readonly sharing?: { readonly trainerId: string };
  /** Requests in flight and elements waiting, together. Default: 16, or two per task if that is more. */
  readonly maxOutstandingRequests?: number;
  /** Who I am to the service. */
  readonly token?: string;
  /** Certificates of authorities in PEM that are trusted beside the usual ones, for `wss://…`. */
  readonly ca?: string;
}

export class DistributeNode extends UnaryNode {
  readonly options: DistributeOptions;

  constructor(input: DatasetNode, options: DistributeOptions) {
    super("distribute", input);
    this.options = checkOptions(options);
  }

  /** Token and certificates stay here: they are the holder's, not the pipeline's. */
  override get attributes(): Attributes {
    const { token: _token, ca: _ca, service, ...rest } = this.options;
    return { ...rest, service: typeof service === "string" ? service : service.address };
  }

  override get elementSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  override get cardinality(): number {
    const once = this.input.cardinality;
    if (this.options.numConsumers !== undefined) return Infinity;
    return once === 0 || once === Infinity ? once : UNKNOWN_CARDINALITY;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return iteratorFactory("distribute")(this, context);
  }
}

registerNode("distribute", {
  fromWire: (a, [input]) => new DistributeNode(input!, a as unknown as DistributeOptions),
});

function checkOptions(options: DistributeOptions): DistributeOptions {
  const { service, processingMode, jobName, consumerIndex, numConsumers, sharing } = options;
  const { maxOutstandingRequests } = options;
  const address: unknown = typeof service === "object" ? service?.address : service;
  if (typeof address !== "string" || address === "") {
    throw invalidArgument("distribute", "service", "an address such as ws://host:port", service);
  }
  if (jobName !== undefined && (typeof jobName !== "string" || jobName === "")) {
    throw invalidArgument("distribute", "jobName", "a non-empty string", jobName);
  }
  const policies: readonly string[] = Object.values(ShardingPolicy);
  if (processingMode !== undefined && !policies.includes(processingMode)) {
    const wanted = `one of ${policies.join(", ")}`;
    throw invalidArgument("distribute", "processingMode", wanted, processingMode);
  }
  checkConsumers(jobName, consumerIndex, numConsumers);
  if (sharing !== undefined && (typeof sharing?.trainerId !== "string" || !sharing.trainerId)) {
    throw invalidArgument("distribute", "sharing.trainerId", "a non-empty string", sharing);
  }
  if (maxOutstandingRequests !== undefined) {
    checkInteger("distribute", "maxOutstandingRequests", maxOutstandingRequests, 1);
  }
  return options;
}

function checkConsumers(jobName: unknown, index: unknown, count: unknown): void {
  if (index === undefined && count === undefined) return;
  if (index === undefined || count === undefined) {
    throw new LeatError(
      "invalid_argument",
      "distribute: set both consumerIndex and numConsumers for coordinated reads, or neither",
    );
  }
  if (jobName === undefined) {
    throw new LeatError(
      "invalid_argument",
      "distribute: jobName must be set with numConsumers, so that the consumers meet in one job",
    );
  }
  const consumers = checkInteger("distribute", "numConsumers", count, 1);
  checkInteger("distribute", "consumerIndex", index, 0, consumers - 1);
}
