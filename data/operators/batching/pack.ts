/** `pack`: concatenates short sequences into rows of equal length, for language models. */
import { LeatError } from "../../../core/error.ts";
import { isPlainObject } from "../../../core/tree.ts";
import { checkInteger, invalidArgument, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { type HeldElements, heldFrom, restoreHeld, saveHeld } from "../../elements/held.ts";
import { END } from "../../iterator.ts";
import { type Attributes, type DatasetNode, registerNode } from "../../node.ts";
import {
  assertNamesFree,
  Bin,
  chooseBin,
  fullest,
  notPackable,
  type PackAlgorithm,
  type Piece,
  POSITIONS,
  RowLayout,
  SEGMENT_IDS,
  type Sequence,
  sequenceOf,
  TOKENS,
} from "../../elements/packing.ts";
import { checkPadding, type PaddingValues } from "../../elements/padding.ts";
import { type ElementSpec, TensorSpec } from "../../elements/spec.ts";
import { BufferMeter } from "../../iterators/stats.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import { wholeState } from "../../checkpoint/whole_state.ts";
import { ElementwiseIterator } from "../elementwise.ts";
import { UnaryNode } from "../unary.ts";
import { within } from "./gathering.ts";

const KIND = "pack";

/** Options of `pack`. */
export interface PackOptions {
  /** Tokens per row. */
  readonly length: number;
  /**
   * Which of the rows with enough space gets a sequence: `"best_fit"` (default), the one with the least
   * space; `"first_fit"`, the oldest.
   */
  readonly algorithm?: PackAlgorithm | undefined;
  /** How many rows are filled at once, which bounds the memory; default 64. */
  readonly maxOpenBins?: number | undefined;
  /**
   * What happens to sequences longer than a row: an error each (default), truncation, or a split
   * into pieces that are sequences of their own.
   */
  readonly overflow?: "error" | "truncate" | "split" | undefined;
  /** The values after the last token of a row: one value, or one per component; default 0 or "". */
  readonly paddingValues?: PaddingValues | undefined;
}

const OPEN_BINS = 64;

export class PackNode extends UnaryNode {
  static readonly options = optionsOf<PackOptions>("pack", {
    length: true,
    algorithm: true,
    maxOpenBins: true,
    overflow: true,
    paddingValues: true,
  });
  override readonly division = "whole";
  readonly length: number;
  readonly algorithm: PackAlgorithm;
  readonly maxOpenBins: number;
  readonly overflow: "error" | "truncate" | "split";
  readonly paddingValues: PaddingValues | undefined;

  constructor(input: DatasetNode, options: PackOptions) {
    super(KIND, input);
    const { algorithm = "best_fit", maxOpenBins = OPEN_BINS, overflow = "error" } = options;
    this.length = checkInteger(KIND, "length", options.length, 1);
    this.algorithm = checkOneOf("algorithm", algorithm, [
      "best_fit",
      "first_fit",
    ]);
    this.maxOpenBins = checkInteger(KIND, "maxOpenBins", maxOpenBins, 1);
    this.overflow = checkOneOf("overflow", overflow, [
      "error",
      "truncate",
      "split",
    ]);
    this.paddingValues = options.paddingValues;
    const { elementSpec } = input;
    packedSpec(elementSpec, this.length);
    checkPadding(KIND, partsOf(elementSpec), { values: this.paddingValues });
  }

  override get attributes(): Attributes {
    const { length, algorithm, maxOpenBins, overflow, paddingValues } = this;
    return { length, algorithm, maxOpenBins, overflow, paddingValues };
  }

  override get elementSpec(): ElementSpec {
    return packedSpec(this.input.elementSpec, this.length);
  }

  override makeIterator(context: IteratorContext): PackIterator {
    return new PackIterator(context, this);
  }
}

registerNode(KIND, {
  fromWire: (a, [input]) => new PackNode(input!, a as unknown as PackOptions),
});

function checkOneOf<T extends string>(argument: string, value: T, allowed: readonly T[]): T {
  if (allowed.includes(value)) return value;
  throw invalidArgument(KIND, argument, allowed.map((at) => `"${at}"`).join(" or "), value);
}

function partsOf(spec: ElementSpec): Record<string, ElementSpec> | undefined {
  if (spec === undefined) return undefined;
  return isPlainObject(spec) ? spec as Record<string, ElementSpec> : { [TOKENS]: spec };
}

/** The spec of rows; refuses specs that cannot be packed. */
function packedSpec(spec: ElementSpec, length: number): ElementSpec {
  const parts = partsOf(spec);
  if (parts === undefined) return undefined;
  assertNamesFree(Object.keys(parts));
  const row: Record<string, ElementSpec> = {};
  for (const [name, leaf] of Object.entries(parts)) {
    if (leaf === undefined) return undefined;
    if (!(leaf instanceof TensorSpec) || leaf.shape.length === 0) {
      throw notPackable(`component ${name} is none`);
    }
    row[name] = new TensorSpec(leaf.dtype, [length, ...leaf.shape.slice(1)]);
  }
  const index = new TensorSpec("int32", [length]);
  return { ...row, [SEGMENT_IDS]: index, [POSITIONS]: index };
}

interface HeldPiece extends Piece {
  readonly held: HeldElements;
}

interface PieceState {
  readonly held: unknown;
  readonly start: number;
  readonly stop: number;
}

interface PackState {
  readonly bins: readonly (readonly PieceState[])[];
  readonly rest: PieceState | null;
  readonly inputEnded: boolean;
}

class PackIterator extends ElementwiseIterator {
  readonly #node: PackNode;
  readonly #meter: BufferMeter;
  /** The rows that are filled, in the order in which they were opened. */
  #bins: Bin<HeldPiece>[] = [];
  /** The layout of the rows being filled or, if there are none, of earlier rows. */
  #layout!: RowLayout;
  /** The part of a sequence that is still to be placed. */
  #rest: HeldPiece | undefined;
  #pieces = 0;
  #inputEnded = false;

  constructor(context: IteratorContext, node: PackNode) {
    super(context);
    this.#node = node;
    this.#meter = new BufferMeter(context.stats);
  }

  override step(): unknown {
    if (this.#rest !== undefined) return this.#place(this.#rest);
    if (!this.#inputEnded) return super.step();
    return this.#bins.length === 0 ? END : this.#close(this.#bins[0]!);
  }

  protected override accept(element: unknown): unknown {
    if (element === END) {
      this.#inputEnded = true;
      return AGAIN;
    }
    const sequence = sequenceOf(element);
    const stop = this.#stopOf(sequence);
    if (stop === 0) return AGAIN;
    if (this.#bins.length === 0) this.#begin(sequence);
    else this.#layout.assertFits(sequence);
    this.#rest = { sequence, start: 0, stop, held: heldFrom(this.input, element) };
    return AGAIN;
  }

  #begin(sequence: Sequence): void {
    this.#layout = new RowLayout(sequence, this.#node.length, this.#node.paddingValues);
  }

  #stopOf({ length }: Sequence): number {
    const { overflow, length: rowLength } = this.#node;
    if (length <= rowLength || overflow === "split") return length;
    if (overflow === "truncate") return rowLength;
    throw new LeatError(
      "invalid_argument",
      `${KIND}: a sequence of ${length} tokens does not fit rows of ${rowLength}; set overflow to ` +
        `"truncate" or "split"`,
    );
  }

  /** Places as much of a sequence as fits into one row. */
  #place(rest: HeldPiece): unknown {
    const { length, algorithm, maxOpenBins } = this.#node;
    const stop = Math.min(rest.start + length, rest.stop);
    const piece = { ...rest, stop };
    const count = stop - rest.start;
    if (count === length) {
      this.#placed(rest, stop);
      return this.#give([piece]);
    }
    let bin = chooseBin(algorithm, this.#bins, count, length);
    if (bin === undefined) {
      if (this.#bins.length === maxOpenBins) return this.#close(fullest(this.#bins)!);
      this.#bins.push(bin = new Bin<HeldPiece>());
    }
    bin.add(piece);
    this.#placed(rest, stop);
    this.#meter.enters(piece.held.elements[0]);
    this.#meter.holds(++this.#pieces);
    return bin.used === length ? this.#close(bin) : AGAIN;
  }

  #placed(rest: HeldPiece, stop: number): void {
    this.#rest = stop === rest.stop ? undefined : { ...rest, start: stop };
  }

  #close(bin: Bin<HeldPiece>): unknown {
    this.#bins.splice(this.#bins.indexOf(bin), 1);
    this.#meter.holds(this.#pieces -= bin.pieces.length);
    return this.#give(bin.pieces);
  }

  #give(pieces: readonly Piece[]): unknown {
    const row = within(KIND, "a row", () => this.#layout.rowOf(pieces));
    // The consumer may transfer the memory of a row, and so must not get that of the rest of a sequence.
    const isPart = pieces.some(({ sequence, start, stop }) => stop - start < sequence.length);
    return this.stats.gave(isPart ? this.context.givenBytes(row) : row);
  }

  protected override ownState(): PackState {
    return {
      bins: this.#bins.map(({ pieces }) => pieces.map(savePiece)),
      rest: this.#rest === undefined ? null : savePiece(this.#rest),
      inputEnded: this.#inputEnded,
    };
  }

  protected override async restoreOwn(state: unknown): Promise<void> {
    const { bins, rest, inputEnded } = state as PackState;
    for (const pieces of bins) {
      const bin = new Bin<HeldPiece>();
      for (const piece of pieces) bin.add(await this.#restorePiece(piece));
      this.#bins.push(bin);
      this.#pieces += pieces.length;
    }
    if (rest !== null) this.#rest = await this.#restorePiece(rest);
    this.#meter.holds(this.#pieces);
    const any = this.#bins[0]?.pieces[0] ?? this.#rest;
    if (any !== undefined) this.#begin(any.sequence);
    this.#inputEnded = inputEnded;
  }

  async #restorePiece(state: PieceState): Promise<HeldPiece> {
    const { held, start, stop } = wholeState(state);
    const restored = await restoreHeld(held, this.input);
    this.#meter.enters(restored.elements[0]);
    const sequence = sequenceOf(restored.elements[0]);
    const isPiece = Number.isSafeInteger(start) && Number.isSafeInteger(stop) &&
      0 <= start && start <= stop && stop <= sequence.length;
    if (isPiece) return { sequence, start, stop, held: restored };
    throw new LeatError(
      "invalid_argument",
      `pack: a saved piece goes from ${start} to ${stop}, but its sequence has ${sequence.length} tokens.`,
    );
  }

  protected override release(): void {
    super.release();
    this.#bins = [];
    this.#rest = undefined;
    this.#inputEnded = true;
    this.#meter.holds(0);
  }
}

function savePiece({ held, start, stop }: HeldPiece): PieceState {
  return { held: saveHeld(held), start, stop };
}
