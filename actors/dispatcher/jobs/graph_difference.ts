/** Shows where two registered pipelines differ, for users who expected them to be equal. */
import { isPlainObject } from "../../../core/tree.ts";

/** At most this many operators are shown: the last ones, or those up to the last difference. */
const OPERATORS_SHOWN = 20;
/** At most this many characters of the differing operator's options are shown. */
const OPTIONS_SHOWN = 200;
/**
 * Larger graphs are not compared: a client may be refused often, and each time all others would
 * wait for the dispatcher.
 */
const GRAPH_BYTES_MAX = 64 * 2 ** 10;
const OPERATORS_MAX = 500;

interface Operator {
  readonly kind: string;
  readonly options: string;
}

/** A sentence with both pipelines, or their sizes if large. Empty if no difference can be shown. */
export function differenceOf(existing: Uint8Array, requested: Uint8Array): string {
  if (existing === requested) return "";
  const [one, other] = [operatorsOf(existing), operatorsOf(requested)];
  if (one === undefined || other === undefined) return "";
  if (one === "too large" || other === "too large") {
    return ` Its pipeline has ${existing.byteLength} bytes, this client's ` +
      `${requested.byteLength}; pipelines of more than ${GRAPH_BYTES_MAX} bytes or ` +
      `${OPERATORS_MAX} operators are not compared.`;
  }
  const same = sameKindsAtEnd(one, other);
  if (same < Math.max(one.length, other.length)) {
    const hidden = same < OPERATORS_SHOWN ? 0 : same - 1;
    return ` Its pipeline is ${chainOf(one, hidden)}, this client's ${chainOf(other, hidden)}.`;
  }
  const at = one.findIndex(({ options }, i) => options !== other[i]!.options);
  if (at < 0) return "";
  return ` Both pipelines are ${chainOf(one)}, and differ in ${one[at]!.kind}: it has ` +
    `${shown(one[at]!)}, this client's ${shown(other[at]!)}.`;
}

/** The operators of a serialised graph, sources first. */
function operatorsOf(graph: Uint8Array): Operator[] | "too large" | undefined {
  const operators: Operator[] = [];
  if (graph.byteLength > GRAPH_BYTES_MAX) return "too large";
  try {
    let next: unknown[] = [(JSON.parse(new TextDecoder().decode(graph)) as { root: unknown }).root];
    while (next.length > 0) {
      const inputs: unknown[] = [];
      for (const node of next) {
        if (!isPlainObject(node)) return undefined;
        if (operators.length >= OPERATORS_MAX) return "too large";
        operators.push({
          kind: String(node.kind),
          options: JSON.stringify(node.attributes ?? null),
        });
        for (const input of node.inputs as unknown[]) inputs.push(input);
      }
      next = inputs;
    }
  } catch {
    return undefined;
  }
  return operators.reverse();
}

/** How many operators before the ends of the two pipelines have the same kinds. */
function sameKindsAtEnd(one: readonly Operator[], other: readonly Operator[]): number {
  const fromEnd = one.toReversed();
  const differing = fromEnd.findIndex(({ kind }, i) => kind !== other.at(-1 - i)?.kind);
  return differing < 0 ? one.length : differing;
}

/** The kinds in order, without the last `hidden` ones. */
function chainOf(operators: readonly Operator[], hidden = 0): string {
  const end = operators.length - hidden;
  const start = Math.max(0, end - OPERATORS_SHOWN);
  const shown = operators.slice(start, end).map(({ kind }) => kind);
  return [...start > 0 ? ["…"] : [], ...shown, ...hidden > 0 ? ["…"] : []].join(" → ");
}

function shown({ options }: Operator): string {
  return options.length > OPTIONS_SHOWN ? `${options.slice(0, OPTIONS_SHOWN)}…` : options;
}
