/**
 * Explanations: a pipeline's graph in words.
 */
import { show } from "./check.ts";
import { type DatasetNode, UNKNOWN_CARDINALITY } from "./node.ts";
import { NodeFunction } from "./call.ts";
import { type ElementSpec, isTuple, TensorSpec } from "./spec.ts";
import { ModuleFunction } from "./udf/user_function.ts";

/** One operator of a graph, for people. */
export interface ExplainedOperator {
  /** Its number in the graph: pre-order, the last operator being 0. */
  readonly number: number;
  /** How far it is from the last operator. */
  readonly depth: number;
  readonly operator: string;
  /** Its arguments: `size=4, dropRemainder=false`. */
  readonly arguments: string;
  readonly cardinality: number;
  readonly elementSpec: ElementSpec;
}

/** The graph of a dataset, last operator first. Prints as an indented list. */
export class Explanation {
  readonly operators: readonly ExplainedOperator[];

  constructor(root: DatasetNode) {
    const operators: ExplainedOperator[] = [];
    const visit = (node: DatasetNode, depth: number) => {
      operators.push({
        number: operators.length,
        depth,
        operator: node.kind,
        arguments: describeArguments(node),
        cardinality: node.cardinality,
        elementSpec: node.elementSpec,
      });
      for (const input of node.inputs) visit(input, depth + 1);
    };
    visit(root, 0);
    this.operators = operators;
  }

  toString(): string {
    return this.operators.map((at) => {
      const count = at.cardinality === UNKNOWN_CARDINALITY
        ? "unknown number of"
        : at.cardinality === Infinity
        ? "endless"
        : `${at.cardinality}`;
      const call = `${at.operator}(${at.arguments})`;
      const spec = describeSpec(at.elementSpec);
      return `${"  ".repeat(at.depth)}${at.number} ${call} → ${count} elements of ${spec}`;
    }).join("\n");
  }

  [Symbol.for("Deno.customInspect")](): string {
    return this.toString();
  }
}

const ARGUMENT_LENGTH_MAX = 60;

function describeArguments(node: DatasetNode): string {
  return Object.entries(node.attributes)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${describeArgument(value)}`)
    .join(", ");
}

function describeArgument(value: unknown): string {
  if (value instanceof NodeFunction) {
    const { fn } = value;
    if (fn instanceof ModuleFunction) return `${fn.name} of ${fn.module}`;
    return shorten(fn.toString().replace(/\s+/g, " "));
  }
  if (Array.isArray(value) && value.length > 8) return `${value.length} values`;
  return shorten(show(value));
}

function shorten(text: string): string {
  return text.length > ARGUMENT_LENGTH_MAX ? `${text.slice(0, ARGUMENT_LENGTH_MAX)}…` : text;
}

function describeSpec(spec: ElementSpec): string {
  if (spec === undefined) return "unknown";
  if (spec instanceof TensorSpec) {
    return spec.shape.length === 0
      ? spec.dtype
      : `${spec.dtype}[${spec.shape.map((at) => at ?? "?").join(", ")}]`;
  }
  if (isTuple(spec)) return `[${spec.map(describeSpec).join(", ")}]`;
  const parts = Object.entries(spec).map(([name, part]) => `${name}: ${describeSpec(part)}`);
  return `{ ${parts.join(", ")} }`;
}
