/**
 * `offload`: part of the operators, for part of the elements, run in the workers of a service. Its
 * iterator is provided from outside the data engine.
 */
import { LeatError } from "../../core/error.ts";
import { isPlainObject } from "../../core/tree.ts";
import { checkInteger, checkOptionalBoolean, invalidArgument, optionsOf } from "../check.ts";
import type { IteratorContext } from "../context.ts";
import type { ElementIterator } from "../iterator.ts";
import { type Attributes, type DatasetNode, registerNode, servedIterator } from "../node.ts";
import { attributesOf, checkDistributeOptions, type DistributeOptions } from "./distribute.ts";
import { SameElementsNode } from "./unary.ts";

/** Where to offload, and how much: what `planOffload()` decides. */
export interface OffloadChoice {
  /**
   * Which operators run remotely: `"p'2"` (all before the batch), `"p'3"` (the batch, too), or the
   * name of a `cutPoint`. `null`: none.
   */
  readonly candidate: string | null;
  /** The share of elements that workers prepare, from 0 to 1. */
  readonly ratio: number;
}

/** How a dataset is offloaded. */
export interface OffloadOptions
  extends Pick<DistributeOptions, "service" | "token" | "ca" | "compression" | "targetTags"> {
  /**
   * What to offload: the result of `planOffload()`, or a choice of your own. Default: decided
   * before the first element, by running some batches of the pipeline here and remotely.
   */
  readonly plan?: OffloadChoice;
  /**
   * How long a training step takes, in ms, if no plan is given: nothing is offloaded that the step
   * would not wait for. Default 0: elements are wanted as fast as they come.
   */
  readonly stepMs?: number;
  /** How many batches each measurement takes, if no plan is given. Default 50. */
  readonly profileSteps?: number;
  /**
   * Whether the offloaded part gives the stream that it gives as a DETERMINISTIC job, whatever the
   * ratio. One side may then wait for the other. Default false: the order depends on the plan.
   */
  readonly deterministic?: boolean;
  /**
   * Whether the ratio is corrected while training runs, by what it waits for; not with
   * `deterministic`. Default: if no plan is given.
   */
  readonly adapt?: boolean;
  /** How long an element of the service is waited for, in ms; then it is prepared here. Default 30,000. */
  readonly timeoutMs?: number;
}

/** Passes all elements of its input on, in another order unless `deterministic`. */
export class OffloadNode extends SameElementsNode {
  static readonly options = optionsOf<OffloadOptions>("offload", {
    service: true,
    token: true,
    ca: true,
    compression: true,
    targetTags: true,
    plan: true,
    stepMs: true,
    profileSteps: true,
    deterministic: true,
    adapt: true,
    timeoutMs: true,
  });
  override readonly division = "served";
  readonly options: OffloadOptions;

  constructor(input: DatasetNode, options: OffloadOptions) {
    super("offload", input);
    this.options = checkOffloadOptions(options);
  }

  override get attributes(): Attributes {
    const { plan, stepMs, profileSteps, deterministic, adapt, timeoutMs, ...where } = this.options;
    const choice = plan && { candidate: plan.candidate, ratio: plan.ratio };
    return {
      ...attributesOf(where),
      ...{ plan: choice, stepMs, profileSteps, deterministic, adapt, timeoutMs },
    };
  }

  /** The service and the plan may change; a saved position says which plan it belongs to. */
  override get decisive(): Attributes {
    return { deterministic: this.options.deterministic };
  }

  /** The random numbers of a pipeline do not depend on where it runs. */
  override get isSetting(): boolean {
    return true;
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return servedIterator(this, context);
  }
}

registerNode("offload", {
  fromWire: (a, [input]) => new OffloadNode(input!, a as unknown as OffloadOptions),
});

function checkOffloadOptions(options: OffloadOptions): OffloadOptions {
  const { plan, stepMs, profileSteps, deterministic, adapt, timeoutMs, ...where } = options;
  checkDistributeOptions("offload", where);
  checkOptionalBoolean("offload", "deterministic", deterministic);
  checkOptionalBoolean("offload", "adapt", adapt);
  if (plan !== undefined) checkChoice(plan);
  if (profileSteps !== undefined) checkInteger("offload", "profileSteps", profileSteps, 1);
  if (timeoutMs !== undefined) checkInteger("offload", "timeoutMs", timeoutMs, 1);
  if (stepMs !== undefined && !(typeof stepMs === "number" && stepMs >= 0)) {
    throw invalidArgument("offload", "stepMs", "a time in ms, from 0", stepMs);
  }
  return options;
}

function checkChoice(plan: unknown): void {
  const { candidate, ratio } = isPlainObject(plan) || plan instanceof Object
    ? plan as Record<string, unknown>
    : {};
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
