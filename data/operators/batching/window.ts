/** `window`: datasets of consecutive elements. */
import { isPlainObject, TREE_DEPTH_MAX } from "../../../core/tree.ts";
import { checkBoolean, checkInteger, invalidArgument, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { restoreHeld, saveHeld } from "../../elements/held.ts";
import { keepMemory } from "../../elements/released.ts";
import { END, type Token } from "../../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  facade,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { BufferMeter } from "../../iterators/stats.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { FromNode } from "../sources/from.ts";
import { UnaryNode } from "../unary.ts";

/** How windows follow each other. */
export interface WindowOptions {
  /** The distance between the starts of two windows, in elements; default `size`. */
  readonly shift?: number | undefined;
  /** The distance between elements of a window; default 1. */
  readonly stride?: number | undefined;
  /** Drops the last windows, which are not full; default false. */
  readonly dropRemainder?: boolean | undefined;
}

export class WindowNode extends UnaryNode {
  static readonly options = optionsOf<WindowOptions>("window", {
    shift: true,
    stride: true,
    dropRemainder: true,
  });
  override readonly division = "whole";
  override readonly needsWholeInput = true;
  /** Specs cannot describe datasets. */
  override readonly elementSpec: undefined = undefined;
  readonly size: number;
  readonly shift: number;
  readonly stride: number;
  readonly dropRemainder: boolean;

  constructor(
    input: DatasetNode,
    size: unknown,
    { shift = size as number, stride = 1, dropRemainder }: WindowOptions = {},
  ) {
    super("window", input);
    this.size = checkInteger("window", "size", size, 1);
    this.shift = checkInteger("window", "shift", shift, 1);
    this.stride = checkInteger("window", "stride", stride, 1);
    this.dropRemainder = checkBoolean("window", "dropRemainder", dropRemainder, false);
  }

  override get attributes(): Attributes {
    const { size, shift, stride, dropRemainder } = this;
    return { size, shift, stride, dropRemainder };
  }

  override get cardinality(): number {
    const count = this.input.cardinality;
    if (count === UNKNOWN_CARDINALITY || count === Infinity) return count;
    if (!this.dropRemainder) return Math.ceil(count / this.shift);
    return Math.max(0, Math.floor((count - this.span) / this.shift) + 1);
  }

  /** How many consecutive elements a full window spans. */
  get span(): number {
    return (this.size - 1) * this.stride + 1;
  }

  override makeIterator(context: IteratorContext): WindowIterator {
    return new WindowIterator(context, this, this.input.elementSpec);
  }
}

registerNode("window", { fromWire: (a, [input]) => new WindowNode(input!, a.size, a) });

interface WindowState {
  readonly held: unknown;
  readonly skips: number;
  readonly inputEnded: boolean;
}

class WindowIterator extends ElementwiseIterator {
  readonly #node: WindowNode;
  readonly #spec: ElementSpec;
  readonly #meter: BufferMeter;
  /** The elements from the start of the next window on. */
  #held: unknown[] = [];
  #tokens: Token[] = [];
  /** How many elements to skip before the next window, if `shift` exceeds the window. */
  #skips = 0;
  #inputEnded = false;

  constructor(context: IteratorContext, node: WindowNode, spec: ElementSpec) {
    super(context);
    this.#node = node;
    this.#spec = spec;
    this.#meter = new BufferMeter(context.stats);
  }

  override step(): unknown {
    return this.#inputEnded ? this.#flush() : super.step();
  }

  protected override accept(element: unknown): unknown {
    if (element === END) {
      this.#inputEnded = true;
      return AGAIN;
    }
    if (this.#skips > 0) {
      this.#skips--;
      return AGAIN;
    }
    if (this.#held.length > 0) assertAlike(this.#held[0], element, this.#held.length);
    keepMemory(element);
    this.#held.push(element);
    const token = this.input.token();
    if (token !== undefined) this.#tokens.push(token);
    this.#meter.enters(element);
    this.#meter.holds(this.#held.length);
    return this.#held.length < this.#node.span ? AGAIN : this.#give();
  }

  #flush(): unknown {
    return this.#held.length === 0 || this.#node.dropRemainder ? END : this.#give();
  }

  #give(): unknown {
    const { stride, shift } = this.#node;
    const elements = stride === 1
      ? this.#held.slice()
      : this.#held.filter((_, i) => i % stride === 0);
    this.#skips = Math.max(0, shift - this.#held.length);
    this.#held.splice(0, shift);
    this.#tokens.splice(0, shift);
    this.#meter.holds(this.#held.length);
    const window = datasetsOf(elements, this.#spec);
    return this.stats.gave(window);
  }

  protected override ownState(): WindowState {
    return {
      held: saveHeld({ elements: this.#held, tokens: this.#tokens }),
      skips: this.#skips,
      inputEnded: this.#inputEnded,
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { held, skips, inputEnded } = state as WindowState;
    const { elements, tokens } = await restoreHeld(held, this.input);
    this.#held = elements;
    this.#tokens = tokens;
    this.#skips = skips;
    this.#inputEnded = inputEnded;
    for (const element of elements) this.#meter.enters(element);
    this.#meter.holds(elements.length);
  }

  protected override release(): void {
    super.release();
    this.#held = [];
    this.#tokens = [];
    this.#inputEnded = true;
    this.#meter.holds(0);
  }
}

type Parts = Readonly<Record<string | number, unknown>>;

/** A dataset per component, for elements of equal structure. */
function datasetsOf(elements: readonly unknown[], spec: ElementSpec): unknown {
  const [first] = elements;
  const part = (key: string | number) =>
    datasetsOf(
      elements.map((element) => (element as Parts)[key]),
      (spec as Record<string | number, ElementSpec> | undefined)?.[key],
    );
  if (Array.isArray(first)) return first.map((_, i) => part(i));
  if (!isPlainObject(first)) return facade().wrap(new FromNode(elements, spec));
  return Object.fromEntries(Object.keys(first).map((key) => [key, part(key)]));
}

/** Refuses an element whose structure differs from that of the first in its window. */
function assertAlike(first: unknown, element: unknown, index: number, path = "$", depth = 0): void {
  const keys = keysOf(first);
  const found = keysOf(element);
  const isAlike = keys === undefined || found === undefined
    ? keys === found
    : Array.isArray(first) === Array.isArray(element) && keys.length === found.length &&
      keys.every((key) => Object.hasOwn(element as object, key));
  if (!isAlike || depth > TREE_DEPTH_MAX) {
    throw invalidArgument(
      "window",
      `element ${index} of a window`,
      `of the structure of the first, ${describe(keys)} at ${path}`,
      element,
    );
  }
  for (const key of keys ?? []) {
    assertAlike((first as Parts)[key], (element as Parts)[key], index, `${path}.${key}`, depth + 1);
  }
}

/** The keys of a structure; `undefined` for a leaf. */
function keysOf(value: unknown): string[] | undefined {
  return Array.isArray(value) || isPlainObject(value) ? Object.keys(value) : undefined;
}

function describe(keys: readonly string[] | undefined): string {
  return keys === undefined ? "a leaf" : `{${keys.join(", ")}}`;
}
