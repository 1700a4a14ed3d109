/** `cache(path)`: elements kept in files after the first complete pass. */
import type { IteratorContext } from "../../context.ts";
import type { DatasetNode } from "../../node.ts";
import { signatureOf } from "../../checkpoint/saving.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import type { Manifest } from "../../saved/manifest.ts";
import { storedNode } from "../../saved/stored_node.ts";
import { type Storing, StoringIterator } from "../../saved/storing_iterator.ts";
import { Nested } from "../combining/opened.ts";

export function fileCacheIterator(
  context: IteratorContext,
  folder: string,
  input: DatasetNode,
): StoringIterator {
  return new StoringIterator(context, new FileCaching(context, folder, input));
}

class FileCaching implements Storing {
  readonly operator = "cache";
  readonly folder: string;
  readonly options: { readonly spec: ElementSpec; readonly pipeline: string };
  readonly passesWhileLocked = false;
  readonly calls = [];
  readonly #context: IteratorContext;

  constructor(context: IteratorContext, folder: string, input: DatasetNode) {
    this.#context = context;
    this.folder = folder;
    this.options = { spec: input.elementSpec, pipeline: signatureOf(input) };
  }

  shardOf(): number {
    return 0;
  }

  open(manifest: Manifest): Nested {
    return this.openAgain(manifest);
  }

  openAgain(manifest: Manifest): Nested {
    const node = storedNode(this.folder, manifest);
    return new Nested(node, () => this.#context.randomStream(), this.#context);
  }
}
