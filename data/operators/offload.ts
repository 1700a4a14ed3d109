/**
 * `offload`: workers of a service run a part of the operators, for a share of the elements.
 * `offload/` provides the iterator.
 */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import {
  checkInteger,
  checkOptionalBoolean,
  invalidArgument,
  optionsOf,
  TIMER_MS_MAX,
} from "../check.ts";
import type { IteratorContext } from "../context.ts";
import { drawsSplitOrder } from "../deterministic/chain.ts";
import type { ElementIterator } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, servedIterator } from "../node.ts";
import { attributesOf, checkDistributeOptions, type DistributeOptions } from "./distribute.ts";
import { SameElementsNode } from "./unary.ts";

/** Where to offload, and how much: what `planOffload()` decides. */
export interface OffloadChoice {
  /**
   * Which operators run remotely: `"p'1"` (all before the batch, except the source), `"p'2"` (all
   * before the batch), `"p'3"` (the batch, too), or the name of a `cutPoint`. `null` offloads
   * nothing.
   */
  readonly candidate: string | null;
  /** The share of elements that workers prepare, from 0 to 1. */
  readonly ratio: number;
}

/** How a dataset is offloaded. */
export interface OffloadOptions extends
  Pick<
    DistributeOptions,
    "service" | "token" | "ca" | "compression" | "targetTags" | "bufferBytesMax"
  > {
  /**
   * What to offload: the result of `planOffload()`, or a choice of your own. Default: decided
   * before the first element, by running some batches of the pipeline here and remotely.
   */
  readonly plan?: OffloadChoice;
  /**
   * How long a training step takes, in ms, if no plan is given. If the local pipeline is as fast,
   * nothing is offloaded. Default 0: elements are wanted as fast as possible.
   */
  readonly stepMs?: number;
  /** How many batches each measurement uses, if no plan is given. Default 50. */
  readonly profileSteps?: number;
  /**
   * How long measuring may take, in ms, if no plan is given. Then the measurements so far decide; a
   * step in progress is completed first. Default 60,000.
   */
  readonly planningTimeoutMs?: number;
  /**
   * Whether the part that workers may run gives the stream of a DETERMINISTIC job, with any ratio.
   * One side may then wait for the other. A plan that offloads nothing gives the local stream, so
   * give each run the same plan. Default: the order depends on the plan, and is kept only where an
   * operator after the offloaded part needs it, such as `window`, `scan`, `take` or `zip`. With
   * `false` only several inputs, as those of `zip`, keep their order.
   */
  readonly deterministic?: boolean;
  /**
   * Whether the plan is changed while training runs. The ratio follows the side that training waits
   * for; which operators workers run is reconsidered from time to time. Has no effect with
   * `deterministic`. Default: true without a plan, false with one.
   */
  readonly adapt?: boolean;
  /**
   * How long to wait for an element of the service, in ms. Then this process prepares it. Default
   * 30,000.
   */
  readonly timeoutMs?: number;
}

/** Gives all elements of its input, in another order unless `deterministic`. */
export class OffloadNode extends SameElementsNode {
  static readonly options = optionsOf<OffloadOptions>("offload", {
    service: true,
    token: true,
    ca: true,
    compression: true,
    targetTags: true,
    bufferBytesMax: true,
    plan: true,
    stepMs: true,
    profileSteps: true,
    planningTimeoutMs: true,
    deterministic: true,
    adapt: true,
    timeoutMs: true,
  });
  override readonly division = "served";
  /** Adding it changes no operator's number, by which operators draw random numbers. */
  override readonly isSetting = true;
  readonly options: OffloadOptions;

  constructor(input: DatasetNode, options: OffloadOptions) {
    super("offload", input);
    this.options = checkOffloadOptions(options);
  }

  /**
   * All fields, because another iteration reads the input and does not know which are needed here.
   */
  override fieldsOfInput(): undefined {
    return undefined;
  }

  override get attributes(): Attributes {
    const { plan, stepMs, profileSteps, planningTimeoutMs, ...others } = this.options;
    const { deterministic, adapt, timeoutMs, ...where } = others;
    const choice = plan && { candidate: plan.candidate, ratio: plan.ratio };
    return {
      ...attributesOf(where),
      ...{ plan: choice, stepMs, profileSteps, planningTimeoutMs },
      ...{ deterministic, adapt, timeoutMs },
    };
  }

  /** The service and the plan may change; a saved position says which plan it belongs to. */
  override get checkpointAttributes(): Attributes {
    return { deterministic: this.options.deterministic };
  }

  override get drawsNumbers(): boolean {
    return drawsSplitOrder(this.input);
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return servedIterator(this, context);
  }
}

registerNode("offload", {
  fromWire: (a, [input]) => new OffloadNode(input!, a as unknown as OffloadOptions),
});

function checkOffloadOptions(options: OffloadOptions): OffloadOptions {
  const { plan, stepMs, profileSteps, planningTimeoutMs, ...others } = options;
  const { deterministic, adapt, timeoutMs, ...where } = others;
  checkDistributeOptions("offload", where);
  checkOptionalBoolean("offload", "deterministic", deterministic);
  checkOptionalBoolean("offload", "adapt", adapt);
  if (plan !== undefined) checkChoice(plan);
  if (profileSteps !== undefined) checkInteger("offload", "profileSteps", profileSteps, 1);
  for (const [name, value] of Object.entries({ planningTimeoutMs, timeoutMs })) {
    if (value !== undefined) checkInteger("offload", name, value, 1, TIMER_MS_MAX);
  }
  if (
    stepMs !== undefined && !(typeof stepMs === "number" && stepMs >= 0 && stepMs <= TIMER_MS_MAX)
  ) {
    throw invalidArgument("offload", "stepMs", `a time in ms, from 0 to ${TIMER_MS_MAX}`, stepMs);
  }
  return options;
}

function checkChoice(plan: unknown): void {
  if (!(isPlainObject(plan) || plan instanceof Object)) {
    throw invalidArgument(
      "offload",
      "plan",
      "what planOffload() returns: { candidate, ratio }",
      plan,
    );
  }
  const { candidate, ratio } = plan as Record<string, unknown>;
  if (candidate !== null && typeof candidate !== "string") {
    throw invalidArgument("offload", "plan.candidate", "a candidate's name, or null", candidate);
  }
  if (!(typeof ratio === "number" && ratio >= 0 && ratio <= 1)) {
    throw new LeatError(
      "invalid_argument",
      `offload: plan.ratio must be a share from 0 to 1, got ${String(ratio)}`,
    );
  }
}

/** The `offload` at the end of a pipeline; only settings may follow it. */
export function offloadOf(node: DatasetNode): OffloadNode | undefined {
  if (node instanceof OffloadNode) return node;
  return node.isSetting ? offloadOf(node.inputs[0]!) : undefined;
}
