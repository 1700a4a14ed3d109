/**
 * The iterator of an operator with a foreign function: it runs in another process, with all
 * operators below it, and gives the same elements as here.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import { foreignRefusal, refuseForeignFunctions, refuseForeignServices } from "./foreign.ts";
import { partOf } from "./foreign_part.ts";
import type { RemoteElements } from "./foreign_runners.ts";
import type { ElementIterator } from "../iterator.ts";
import type { DatasetNode } from "../node.ts";
import { RemoteIterator } from "./remote_iterator.ts";

/** State that the iterators of a node share: one iterator reports it, the next receives it. */
const sharedOf = new WeakMap<DatasetNode, Uint8Array>();

/** Codes of errors by which no process can be started: a permission, feature or file is missing. */
const OBSTACLES: ReadonlySet<string> = new Set(["permission_denied", "unimplemented", "not_found"]);

export function foreignIterator(node: DatasetNode, context: IteratorContext): ElementIterator {
  return new RemoteIterator(
    context,
    () => open(node, context),
    (shared) => sharedOf.set(node, shared),
  );
}

async function open(node: DatasetNode, context: IteratorContext): Promise<RemoteElements> {
  const { host, start } = context.elsewhere;
  refuseForeignFunctions([node], host);
  refuseForeignServices(node);
  const { part, openInput } = partOf(context);
  const shared = sharedOf.get(node);
  try {
    const opened = shared === undefined ? part : { ...part, shared };
    return await start().open(opened, openInput);
  } catch (error) {
    const { code, message } = LeatError.from(error);
    if (!OBSTACLES.has(code)) throw error;
    throw foreignRefusal(`call the function of ${node.kind}`, message);
  }
}
