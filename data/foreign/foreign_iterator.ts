/**
 * The iterator of an operator with a foreign function. A confined process runs the operator and those
 * below it, and gives the elements that this process would give.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import {
  foreignRefusal,
  isForeign,
  rebuilt,
  refuseForeignFunctions,
  refuseForeignServices,
} from "./foreign.ts";
import type { ForeignPart, OpenInput, RemoteElements, ServedElements } from "./foreign_runners.ts";
import type { ElementIterator } from "../iterator.ts";
import type { DatasetNode } from "../node.ts";
import { RemoteIterator } from "./remote_iterator.ts";
import { PartInputNode } from "./part_input.ts";
import type { OperatorInstance } from "../operator_instances.ts";
import {
  ELEMENT_VALUES_MAX,
  EncodedValue,
  encodeValue,
  hasManyValues,
} from "../elements/value_codec.ts";
import { serializeGraph } from "../wire.ts";

/**
 * State that a node's iterators share, such as a cache. One iterator reports it; the next gets it.
 */
const sharedOf = new WeakMap<DatasetNode, Uint8Array>();

/** Error codes that mean that no process can be started: a permission, feature or file is missing. */
const OBSTACLES: ReadonlySet<string> = new Set(["permission_denied", "unimplemented", "not_found"]);

export function foreignIterator(node: DatasetNode, context: IteratorContext): ElementIterator {
  return new RemoteIterator(
    context,
    () => open(node, context),
    (shared) => sharedOf.set(node, shared),
  );
}

async function open(node: DatasetNode, context: IteratorContext): Promise<RemoteElements> {
  const { host, start } = context.delegation;
  refuseForeignFunctions([node], host);
  refuseForeignServices(node);
  const { part, openInput } = partOf(context);
  const shared = sharedOf.get(node);
  try {
    const withShared = shared === undefined ? part : { ...part, shared };
    return await start().open(withShared, openInput);
  } catch (error) {
    const { code, message } = LeatError.from(error);
    if (!OBSTACLES.has(code)) throw error;
    throw foreignRefusal(`call the function of ${node.kind}`, message);
  }
}

/**
 * The operator of a context and all foreign operators below it, to run in another process. Operators
 * of this program below them stay here, and `openInput` opens one of them.
 */
function partOf(
  context: IteratorContext,
): { readonly part: ForeignPart; readonly openInput: OpenInput<ServedElements> } {
  const { deterministic, instance, contextOf } = context.delegation;
  const { stats: { number }, randomStateNumber, keepsOrder } = instance;
  const { root, salt, seeded, epoch, split } = context.randomState;
  const randomState = { root: root().name, salt: String(salt), seeded, epoch, split };
  const own: OperatorInstance[] = [];
  const graph = graphOfPart(instance, own);
  const openInput = (input: number, epoch: number) => {
    const instance = own[input];
    if (instance === undefined) {
      throw new LeatError("invalid_argument", `There is no input ${input}`);
    }
    return servedInput(contextOf(instance, epoch));
  };
  const numbers = { number, randomStateNumber };
  return {
    part: { graph, randomState, deterministic, needsOrder: keepsOrder, ...numbers },
    openInput,
  };
}

/** A part's graph, with a `PartInputNode` for each of this program's operators, which go into `own`. */
function graphOfPart(root: OperatorInstance, own: OperatorInstance[]): Uint8Array {
  const visit = (instance: OperatorInstance): DatasetNode => {
    if (!isForeign(instance.node)) return PartInputNode.of(instance.node, own.push(instance) - 1);
    const inputs = instance.inputs.map(visit);
    const isSame = inputs.every((input, i) => input === instance.node.inputs[i]);
    return isSame ? instance.node : rebuilt(instance.node, instance.node.attributes, inputs);
  };
  return serializeGraph(visit(root));
}

/** The elements of an operator of this program, for a part that runs in another process. */
function servedInput(context: IteratorContext): ServedElements {
  const { sharedReads } = context;
  const elements = context.makeIterator();
  const requireFewValues = (state: Uint8Array) => {
    if (!hasManyValues(state)) return state;
    throw new LeatError(
      "resource_exhausted",
      `The state of ${context.stats.operator} has more than ${ELEMENT_VALUES_MAX} plain values ` +
        "(ELEMENT_VALUES_MAX); put numbers into tensors, or keep fewer elements in its buffers",
    );
  };
  return {
    elements,
    save: async () => requireFewValues(encodeValue(await elements.save())),
    // The state comes from another process: it may be too large, and datasets in it are foreign.
    restore: async (state) =>
      await elements.restore(new EncodedValue(requireFewValues(state)).read()),
    news: (isEnd) => isEnd && context.sharedReads > sharedReads ? { isShare: true } : {},
  };
}
