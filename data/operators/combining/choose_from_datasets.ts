/** `chooseFromDatasets`: elements of several datasets, in the order that another dataset gives. */
import { checkBoolean, invalidArgument, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type ElementIterator, END } from "../../iterator.ts";
import {
  type Attributes,
  type Changeable,
  DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { commonSpec, type ElementSpec, specText, TensorSpec } from "../../elements/spec.ts";
import type { Replicated } from "../../sharding/splits.ts";
import type { OperatorMeter } from "../../iterators/stats.ts";
import { DirectedIterator, type Selector } from "./directed.ts";

const KIND = "chooseFromDatasets";

/** Options of `chooseFromDatasets`. */
export interface ChooseFromDatasetsOptions {
  /**
   * Whether it ends when the chosen dataset has no more; otherwise it skips the choice. Default
   * true.
   */
  readonly stopOnEmptyDataset?: boolean | undefined;
}

export class ChooseFromDatasetsNode extends DatasetNode implements Replicated {
  static readonly options = optionsOf<ChooseFromDatasetsOptions>("chooseFromDatasets", {
    stopOnEmptyDataset: true,
  });
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  readonly stopOnEmptyDataset: boolean;
  override readonly elementSpec: ElementSpec;

  constructor(
    datasets: readonly DatasetNode[],
    choice: DatasetNode,
    { stopOnEmptyDataset }: ChooseFromDatasetsOptions = {},
  ) {
    super(KIND, [...datasets, choice]);
    if (datasets.length === 0) throw invalidArgument(KIND, "datasets", "at least one", datasets);
    checkChoiceSpec(choice.elementSpec);
    this.stopOnEmptyDataset = checkBoolean(KIND, "stopOnEmptyDataset", stopOnEmptyDataset, true);
    this.elementSpec = commonSpec(KIND, datasets.map((dataset) => dataset.elementSpec));
  }

  override get attributes(): Attributes {
    return { stopOnEmptyDataset: this.stopOnEmptyDataset };
  }

  override get cardinality(): number {
    if (this.inputs.at(-1)!.cardinality === 0) return 0;
    const isEndless = this.inputs.every((input) => input.cardinality === Infinity);
    return isEndless ? Infinity : UNKNOWN_CARDINALITY;
  }

  override changeableInput(own: Changeable): Changeable {
    return own;
  }

  /** Each task that reads splits reads all choices itself, from the first on. */
  get replicatedInput(): number {
    return this.inputs.length - 1;
  }

  override makeIterator(context: IteratorContext): DirectedIterator {
    const count = this.inputs.length - 1;
    const choices = context.makeInput(count);
    return new DirectedIterator(
      context,
      count,
      this.stopOnEmptyDataset,
      () => choicesOf(choices, count, context.stats),
    );
  }
}

registerNode(KIND, {
  fromWire: (a, inputs) => new ChooseFromDatasetsNode(inputs.slice(0, -1), inputs.at(-1)!, a),
});

/** Refuses choices that are known not to be numbers. */
function checkChoiceSpec(spec: ElementSpec): void {
  if (spec === undefined) return;
  const isNumber = spec instanceof TensorSpec && spec.shape.length === 0 &&
    /^(u?int|float)/.test(spec.dtype);
  if (isNumber) return;
  throw invalidArgument(KIND, "choice", `a dataset of ${CHOICES}`, specText(spec));
}

const CHOICES = "plain numbers or bigints, each the index of a dataset; convert it by map()";

/** Chooses as the dataset `choices` says. */
function choicesOf(choices: ElementIterator, count: number, stats: OperatorMeter): Selector {
  const check = (choice: unknown) => {
    if (choice === END) return END;
    const index = typeof choice === "bigint" ? Number(choice) : choice;
    if (Number.isInteger(index) && index as number >= 0 && index as number < count) return index;
    const wanted = `an integer from 0 to ${count - 1}`;
    throw stats.failed(invalidArgument(KIND, "a choice", `${wanted} (${CHOICES})`, choice));
  };
  return {
    select: () => {
      const choice = choices.next();
      return choice instanceof Promise ? choice.then(check) : check(choice);
    },
    save: () => choices.save(),
    restore: (state) => choices.restore(state),
    release: () => choices.dispose(),
  };
}
