/** Packing: concatenates sequences into rows of equal length. */
import { type DType, isTypedArray, zerosOf } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { Tensor, tensor } from "../../core/tensor.ts";
import { isPlainObject } from "../../core/tree.ts";
import { show } from "../check.ts";
import { component, copyInto, itemsOf, sameShape, tensorOf } from "./leaf_columns.ts";
import { checkNames, type Fill, fillValue, type PaddingValues } from "./padding.ts";

/** The components that packing adds. */
export const SEGMENT_IDS = "segmentIds";
export const POSITIONS = "positions";

/** The component name of an element that is a sequence itself. */
export const TOKENS = "tokens";

/** A sequence: named components of the same length. */
export interface Sequence {
  readonly fields: Readonly<Record<string, Tensor>>;
  readonly length: number;
}

/** Part of a sequence. */
export interface Piece {
  readonly sequence: Sequence;
  readonly start: number;
  readonly stop: number;
}

/** The error for an element that cannot be packed. */
export function notPackable(why: string): LeatError {
  return new LeatError(
    "invalid_argument",
    `pack: elements must be sequences (typed arrays or tensors with an axis), or objects of ` +
      `sequences of one length: ${why}`,
  );
}

/** Reads an element as a sequence; `invalid_argument` if it is none. */
export function sequenceOf(element: unknown): Sequence {
  const parts = isPlainObject(element) ? element : { [TOKENS]: element };
  const fields: Record<string, Tensor> = {};
  let length: number | undefined;
  for (const [name, part] of Object.entries(parts)) {
    const leaf = isTypedArray(part) ? tensor(part) : part;
    if (!(leaf instanceof Tensor) || leaf.shape.length === 0) {
      throw notPackable(`${component(name)} is ${show(part)}`);
    }
    if (length !== undefined && leaf.shape[0] !== length) {
      throw notPackable(`${component(name)} has ${leaf.shape[0]} tokens, others ${length}`);
    }
    itemsOf(leaf, leaf.shape, name);
    length = leaf.shape[0]!;
    fields[name] = leaf;
  }
  if (length === undefined) throw notPackable("got an object without components");
  assertNamesFree(Object.keys(fields));
  return { fields, length };
}

/** Refuses components with the names that packing adds. */
export function assertNamesFree(names: readonly string[]): void {
  const taken = names.find((name) => name === SEGMENT_IDS || name === POSITIONS);
  if (taken !== undefined) throw notPackable(`${component(taken)} is added by packing; rename it`);
}

interface RowField {
  readonly dtype: DType;
  /** The shape of one token. */
  readonly inner: readonly number[];
  /** The padding after the last token of a row. */
  readonly fill: Fill;
}

/** The layout of rows: the components of sequences that may share one. */
export class RowLayout {
  readonly #fields: ReadonlyMap<string, RowField>;
  readonly #length: number;

  /** Rows of `length` tokens for sequences like this one. */
  constructor({ fields }: Sequence, length: number, padding: PaddingValues | undefined) {
    this.#length = length;
    checkNames(
      "pack",
      fields,
      { values: padding },
      "",
      () => `{${Object.keys(fields).join(", ")}}`,
    );
    this.#fields = new Map(
      Object.entries(fields).map(([name, { dtype, shape }]) => {
        const value = isPlainObject(padding) ? padding[name] as PaddingValues : padding;
        const fill = fillValue("pack", value, dtype, name);
        return [name, { dtype, inner: shape.slice(1), fill }];
      }),
    );
  }

  /** Refuses a sequence that cannot share a row with those before. */
  assertFits({ fields }: Sequence): void {
    const names = Object.keys(fields);
    const known = [...this.#fields.keys()];
    if (names.length !== known.length || names.some((name) => !this.#fields.has(name))) {
      throw notPackable(`got {${names.join(", ")}} after {${known.join(", ")}}`);
    }
    for (const [name, { dtype, inner }] of this.#fields) {
      const found = fields[name]!;
      if (found.dtype === dtype && sameShape(found.shape.slice(1), inner)) continue;
      throw notPackable(
        `tokens of ${component(name)} are ${found.dtype}[${found.shape.slice(1)}] after ` +
          `${dtype}[${inner}]`,
      );
    }
  }

  /** A row of pieces, numbered from 1, and padding. */
  rowOf(pieces: readonly Piece[]): Record<string, Tensor> {
    const row: Record<string, Tensor> = {};
    for (const [name, field] of this.#fields) row[name] = this.#fieldOf(name, field, pieces);
    const segmentIds = new Int32Array(this.#length);
    const positions = new Int32Array(this.#length);
    let at = 0;
    for (const [i, { start, stop }] of pieces.entries()) {
      for (let position = 0; position < stop - start; position++, at++) {
        segmentIds[at] = i + 1;
        positions[at] = position;
      }
    }
    row[SEGMENT_IDS] = tensor(segmentIds);
    row[POSITIONS] = tensor(positions);
    return row;
  }

  #fieldOf(name: string, { dtype, inner, fill }: RowField, pieces: readonly Piece[]): Tensor {
    const tokenSize = inner.reduce((a, b) => a * b, 1);
    const data = zerosOf(dtype, this.#length * tokenSize);
    let at = 0;
    for (const { sequence, start, stop } of pieces) {
      const tokens = sequence.fields[name]!.data;
      const [from, to] = [start * tokenSize, stop * tokenSize];
      if (isTypedArray(data)) {
        copyInto(data, (tokens as typeof data).subarray(from, to), at);
      } else for (let i = from; i < to; i++) data[at + i - from] = tokens[i] as never;
      at += to - from;
    }
    if (fill !== undefined) (data as unknown[]).fill(fill, at);
    return tensorOf(dtype, [this.#length, ...inner], data);
  }
}

/** A row that is not full yet. */
export class Bin<P extends Piece> {
  readonly pieces: P[] = [];
  /** The number of tokens in it. */
  used = 0;

  add(piece: P): void {
    this.pieces.push(piece);
    this.used += piece.stop - piece.start;
  }
}

/** Which of the rows with enough space gets a sequence: the oldest, or the one with the least space. */
export type PackAlgorithm = "first_fit" | "best_fit";

/** The bin for `count` tokens; `undefined` if none has space. */
export function chooseBin<P extends Piece>(
  algorithm: PackAlgorithm,
  bins: readonly Bin<P>[],
  count: number,
  length: number,
): Bin<P> | undefined {
  if (algorithm === "first_fit") return bins.find(({ used }) => used + count <= length);
  return fullest(bins.filter(({ used }) => used + count <= length));
}

/** The bin with the most tokens; of several, the oldest. */
export function fullest<P extends Piece>(bins: readonly Bin<P>[]): Bin<P> | undefined {
  let best: Bin<P> | undefined;
  for (const bin of bins) if (best === undefined || bin.used > best.used) best = bin;
  return best;
}
