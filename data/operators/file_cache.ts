/**
 * `cache(path)`: elements kept in files after the first complete pass.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import { type ElementSpec, mergeSpecs } from "../spec.ts";
import type { Manifest } from "../stored/manifest.ts";
import { storedNode } from "../stored/stored_node.ts";
import { type Storing, StoringIterator } from "../stored/storing_iterator.ts";
import { Nested } from "./opened.ts";

/** The iterator of a cache in files. `spec`: what is known of the input's elements. */
export function fileCacheIterator(
  context: IteratorContext,
  folder: string,
  spec: ElementSpec,
): StoringIterator {
  return new StoringIterator(context, new FileCaching(context, folder, spec));
}

class FileCaching implements Storing {
  readonly operator = "cache";
  readonly folder: string;
  readonly options: { readonly spec: ElementSpec };
  readonly passesWhileLocked = false;
  readonly calls = [];
  readonly #context: IteratorContext;

  constructor(context: IteratorContext, folder: string, spec: ElementSpec) {
    this.#context = context;
    this.folder = folder;
    this.options = { spec };
  }

  shardOf(): number {
    return 0;
  }

  open(manifest: Manifest): Nested {
    mergeSpecs(this.options.spec, manifest.spec, (path) => {
      throw new LeatError(
        "failed_precondition",
        `cache: ${this.folder} holds elements of another structure; they differ at ${path}. Remove ` +
          "the folder to have it written again, or give this cache another path.",
      );
    });
    return this.openAgain(manifest);
  }

  openAgain(manifest: Manifest): Nested {
    const node = storedNode(this.folder, manifest);
    return new Nested(node, () => this.#context.randomStream(), this.#context);
  }
}
