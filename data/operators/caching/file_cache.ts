/** `cache(path)`: elements kept in files after the first complete pass. */
import type { IteratorContext } from "../../context.ts";
import type { DatasetNode } from "../../node.ts";
import { signatureOf } from "../../checkpoint/saving.ts";
import type { Manifest } from "../../saved/manifest.ts";
import { storedNode } from "../../saved/stored_node.ts";
import { type Storing, StoringIterator } from "../../saved/storing_iterator.ts";
import { Nested } from "../combining/opened.ts";

export function fileCacheIterator(
  context: IteratorContext,
  folder: string,
  input: DatasetNode,
): StoringIterator {
  return new StoringIterator(context, fileCaching(context, folder, input));
}

function fileCaching(context: IteratorContext, folder: string, input: DatasetNode): Storing {
  const open = (manifest: Manifest) =>
    new Nested(storedNode(folder, manifest), () => context.randomStream(), context);
  return {
    operator: "cache",
    folder,
    options: { spec: input.elementSpec, pipeline: signatureOf(input) },
    passesWhileLocked: false,
    calls: [],
    shardOf: () => 0,
    open,
    openAgain: open,
  };
}
