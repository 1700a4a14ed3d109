/** Makes the model of a running pipeline from what its operators have measured. */
import type { Knob } from "./knob.ts";
import type { Setting, Stage } from "./model.ts";
import type { OperatorFigures } from "../iterators/stats.ts";
import type { DatasetNode } from "../node.ts";

/** What the model needs of one operator of a running pipeline. */
export interface Measured {
  readonly node: DatasetNode;
  readonly isPassed: boolean;
  readonly figures: OperatorFigures;
  readonly knob: Knob | undefined;
  readonly inputs: readonly Measured[];
}

const ONE: Setting = { value: 1 };
const NONE: Setting = { value: 0 };

/**
 * The stages of an operator and its inputs; `undefined` if one of them has not given an element yet.
 * `onStage` receives each stage with its operator. `ignoresIdle`: leaves out inputs that did nothing.
 */
export function stageOf(
  operator: Measured,
  onStage: (operator: Measured, stage: Stage) => void,
  options: { readonly ignoresIdle?: boolean } = {},
): Stage | undefined {
  const { node, figures, inputs } = operator;
  if (operator.isPassed) return stageOf(inputs[0]!, onStage, options);
  const { elements } = figures;
  if (elements === 0) return undefined;
  const below = [];
  for (const input of inputs) {
    if (options.ignoresIdle === true && isIdle(input)) continue;
    const stage = stageOf(input, onStage, options);
    if (stage === undefined) return undefined;
    below.push({ stage, ratio: givenBy(input) / elements });
  }
  const stage: Stage = {
    ...settingsOf(operator),
    serialMs: (figures.selfMs + (waitsOutside(node) ? figures.waitMs : 0)) / elements,
    callMs: figures.callMs / elements,
    elementBytes: figures.bytesOut / elements,
    inputsOpen: numberOf(node.attributes.cycleLength) ?? 1,
    inputs: below,
  };
  onStage(operator, stage);
  return stage;
}

function isIdle({ figures, inputs }: Measured): boolean {
  const { elements, selfMs, waitMs, callMs } = figures;
  return elements + selfMs + waitMs + callMs === 0 && inputs.every(isIdle);
}

/** Whether it waits for something other than its inputs: files, or a service. */
export function waitsOutside(node: DatasetNode): boolean {
  return node.inputs.length === 0 || "numParallelReads" in node.attributes ||
    node.division === "served";
}

function givenBy(operator: Measured): number {
  return operator.isPassed ? givenBy(operator.inputs[0]!) : operator.figures.elements;
}

function settingsOf({ node, knob }: Measured): Pick<Stage, "kind" | "parallelism" | "buffer"> {
  const { kind, attributes: { numParallelCalls, bufferSize } } = node;
  if (node.adviceFacts.readsAhead) {
    return { kind: "prefetch", parallelism: ONE, buffer: knob ?? fixed(bufferSize) };
  }
  const isSerial = numParallelCalls === undefined && knob === undefined;
  if (!node.adviceFacts.callsSideBySide || isSerial) {
    return { kind: "sync", parallelism: ONE, buffer: NONE };
  }
  const setting = knob ?? fixed(numParallelCalls);
  // The window of calls is also the buffer: settled results wait in it.
  return {
    kind: kind === "interleave" ? "interleave" : "calls",
    parallelism: setting,
    buffer: setting,
  };
}

function fixed(value: unknown): Setting {
  return { value: Math.max(1, numberOf(value) ?? 1) };
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}
