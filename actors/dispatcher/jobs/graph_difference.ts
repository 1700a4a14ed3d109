/** Shows where two registered pipelines differ, for users who expected them to be equal. */
import { isPlainObject } from "../../../core/tree.ts";

/** Most operators shown; of longer pipelines the last ones. */
const OPERATORS_SHOWN = 20;
/** Most characters shown of the options of the differing operator. */
const OPTIONS_SHOWN = 200;
/** Larger graphs, in bytes, are not decoded, as that would block the dispatcher. */
const GRAPH_BYTES_READ = 2 ** 20;

interface Operator {
  readonly kind: string;
  readonly options: string;
}

/** A sentence with both pipelines; empty if one cannot be decoded or is too large. */
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
