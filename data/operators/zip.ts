/**
 * `zip`: elements of several datasets side by side.
 */
import { LeatError } from "../../core/error.ts";
import type { IteratorContext } from "../context.ts";
import { ElementIterator, END, type Pulled } from "../iterator.ts";
import { type Attributes, DatasetNode, registerNode, UNKNOWN_CARDINALITY } from "../node.ts";
import type { ElementSpec } from "../spec.ts";

export class ZipNode extends DatasetNode {
  /** The names of the components; `null` for a tuple. */
  readonly keys: readonly string[] | null;

  constructor(inputs: readonly DatasetNode[], keys: readonly string[] | null) {
    super("zip", inputs);
    if (inputs.length === 0) {
      throw new LeatError("invalid_argument", "zip: datasets must hold at least one dataset");
    }
    this.keys = keys;
  }

  override get attributes(): Attributes {
    return { keys: this.keys };
  }

  override get elementSpec(): ElementSpec {
    return assemble(this.keys, this.inputs.map((input) => input.elementSpec)) as ElementSpec;
  }

  /** That of the shortest. */
  override get cardinality(): number {
    const all = this.inputs.map((input) => input.cardinality);
    if (all.includes(0)) return 0;
    return all.includes(UNKNOWN_CARDINALITY) ? UNKNOWN_CARDINALITY : Math.min(...all);
  }

  override makeIterator(context: IteratorContext): ZipIterator {
    return new ZipIterator(context, this.inputs.length, this.keys);
  }
}

registerNode("zip", {
  fromWire: (a, inputs) => new ZipNode(inputs, a.keys as readonly string[] | null),
});

function assemble(keys: readonly string[] | null, parts: unknown[]): unknown {
  return keys === null ? parts : Object.fromEntries(keys.map((key, i) => [key, parts[i]]));
}

class ZipIterator extends ElementIterator {
  readonly #context: IteratorContext;
  readonly #inputs: readonly ElementIterator[];
  readonly #keys: readonly string[] | null;
  #ended = false;

  constructor(context: IteratorContext, count: number, keys: readonly string[] | null) {
    super();
    this.#context = context;
    this.#inputs = Array.from({ length: count }, (_, i) => context.makeInput(i));
    this.#keys = keys;
  }

  /** A failed element advances the other inputs past it too, so that they stay side by side. */
  override next(): Pulled<unknown> {
    if (this.#ended) return END;
    const parts: unknown[] = [];
    let waits = false;
    let failure: { error: unknown } | undefined;
    for (const input of this.#inputs) {
      try {
        const part = input.next();
        if (part === END) return this.#end(parts);
        waits ||= part instanceof Promise;
        parts.push(part);
      } catch (error) {
        failure ??= { error };
      }
    }
    if (waits) return this.#later(parts, failure);
    if (failure !== undefined) throw failure.error;
    return this.#give(parts);
  }

  async #later(parts: unknown[], failure: { error: unknown } | undefined): Promise<unknown> {
    ignoreRejections(parts);
    const arrived: unknown[] = [];
    for (const part of parts) {
      try {
        const element = await part;
        if (element === END) return this.#end(parts);
        arrived.push(element);
      } catch (error) {
        failure ??= { error };
      }
    }
    if (failure !== undefined) throw failure.error;
    return this.disposed ? END : this.#give(arrived);
  }

  #give(parts: unknown[]): unknown {
    this.#context.stats.elements++;
    return assemble(this.#keys, parts);
  }

  /** The shortest input ends them all; what the others were asked for is not wanted any more. */
  #end(parts: readonly unknown[]): typeof END {
    this.#ended = true;
    ignoreRejections(parts);
    for (const input of this.#inputs) input.dispose();
    return END;
  }

  protected override release(): void {
    this.#ended = true;
    for (const input of this.#inputs) input.dispose();
  }
}

function ignoreRejections(parts: readonly unknown[]): void {
  for (const part of parts) if (part instanceof Promise) part.catch(() => {});
}
