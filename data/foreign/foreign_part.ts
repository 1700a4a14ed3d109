/** Cuts out of a graph the part that is to run in another process. */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import { isForeign, rebuilt } from "./foreign.ts";
import type { ForeignPart, OpenInput, ServedElements } from "./foreign_runners.ts";
import type { DatasetNode } from "../node.ts";
import { PartInputNode } from "./part_input.ts";
import type { Place } from "../places.ts";
import { EncodedValue, encodeValue } from "../elements/value_codec.ts";
import { serializeGraph } from "../wire.ts";

/**
 * The operator of a context and all foreign operators below it, to run in another process. Below
 * them are operators of this program: `openInput` opens one of these here.
 */
export function partOf(
  context: IteratorContext,
): { readonly part: ForeignPart; readonly openInput: OpenInput<ServedElements> } {
  const { deterministic, place, contextOf } = context.elsewhere;
  const { stats: { number }, randomStateNumber } = place;
  const { root, salt, seeded, epoch, split } = context.randomState;
  const randomState = { root: root().name, salt: String(salt), seeded, epoch, split };
  const own: Place[] = [];
  const graph = graphOfPart(place, own);
  const openInput = (input: number, epoch: number) => {
    const place = own[input];
    if (place === undefined) throw new LeatError("invalid_argument", `There is no input ${input}`);
    return servedInput(contextOf(place, epoch));
  };
  return { part: { graph, randomState, deterministic, number, randomStateNumber }, openInput };
}

/** The graph of a part, with inputs in place of this program's own operators, which are added to `own`. */
function graphOfPart(root: Place, own: Place[]): Uint8Array {
  const visit = (place: Place): DatasetNode => {
    if (!isForeign(place.node)) return PartInputNode.of(place.node, own.push(place) - 1);
    const inputs = place.inputs.map(visit);
    const isSame = inputs.every((input, i) => input === place.node.inputs[i]);
    return isSame ? place.node : rebuilt(place.node, place.node.attributes, inputs);
  };
  return serializeGraph(visit(root));
}

/** The elements of an operator of this program, for a part that runs elsewhere. */
function servedInput(context: IteratorContext): ServedElements {
  const elements = context.makeIterator();
  return {
    elements,
    save: async () => encodeValue(await elements.save()),
    // The state comes from another process: datasets in it are foreign.
    restore: (state) => elements.restore(new EncodedValue(state).read()),
    news: (isEnd) => isEnd && context.isShare ? { isShare: true } : {},
  };
}
