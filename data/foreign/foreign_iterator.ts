/**
 * The iterator of an operator whose function this program did not build: it runs elsewhere, with all
 * below it, and gives the same as it would here.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import { foreignRefusal, refuseForeignFunctions, refuseForeignServices } from "./foreign.ts";
import { partOf } from "./foreign_part.ts";
import type { RemoteElements } from "./foreign_runners.ts";
import type { ElementIterator } from "../iterator.ts";
import type { DatasetNode } from "../node.ts";
import { RemoteIterator } from "./remote_iterator.ts";

/** What iterators of a node share that ran elsewhere: told by one, handed to the next. */
const sharedOf = new WeakMap<DatasetNode, Uint8Array>();

/** Why nothing can be started: this program may not, or this machine cannot. */
const OBSTACLES: ReadonlySet<string> = new Set(["permission_denied", "unimplemented", "not_found"]);

/** The iterator of an operator that runs apart. */
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
