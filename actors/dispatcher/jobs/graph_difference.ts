/**
 * Where two registered pipelines differ, for those who thought that they were the same.
 *
 * @module
 */
import { isPlainObject } from "../../../core/tree.ts";

/** Operators that are named; of longer pipelines those at the end are. */
const OPERATORS_SHOWN = 20;
/** Characters of the options of the operator in which they differ. */
const OPTIONS_SHOWN = 200;
/** Bytes of a graph beyond which it is not read: that would hold up everybody else. */
const GRAPH_BYTES_READ = 2 ** 20;

interface Operator {
  readonly kind: string;
  readonly options: string;
}

/** A sentence with both pipelines; none where one of them cannot be read, or is large. */
export function differenceOf(existing: Uint8Array, requested: Uint8Array): string {
  const [one, other] = [operatorsOf(existing), operatorsOf(requested)];
  if (one === undefined || other === undefined) return "";
  const [chain, otherChain] = [chainOf(one), chainOf(other)];
  if (chain !== otherChain) return ` Its pipeline is ${chain}, this client's ${otherChain}.`;
  const at = one.findIndex(({ options }, i) => options !== other[i]?.options);
  if (at < 0) return "";
  return ` Both pipelines are ${chain}, and differ in ${one[at]!.kind}: it has ` +
    `${shown(one[at]!)}, this client's ${shown(other[at]!)}.`;
}

/** The operators of a serialised graph, sources first. */
function operatorsOf(graph: Uint8Array): Operator[] | undefined {
  const operators: Operator[] = [];
  if (graph.byteLength > GRAPH_BYTES_READ) return undefined;
  try {
    let next: unknown[] = [(JSON.parse(new TextDecoder().decode(graph)) as { root: unknown }).root];
    while (next.length > 0) {
      const inputs: unknown[] = [];
      for (const node of next) {
        if (!isPlainObject(node)) return undefined;
        operators.unshift({ kind: String(node.kind), options: JSON.stringify(node.attributes) });
        inputs.push(...node.inputs as unknown[]);
      }
      next = inputs;
    }
  } catch {
    return undefined;
  }
  return operators;
}

function chainOf(operators: readonly Operator[]): string {
  const shown = operators.slice(-OPERATORS_SHOWN).map(({ kind }) => kind).join(" → ");
  return operators.length > OPERATORS_SHOWN ? `… → ${shown}` : shown;
}

function shown({ options }: Operator): string {
  return options.length > OPTIONS_SHOWN ? `${options.slice(0, OPTIONS_SHOWN)}…` : options;
}
