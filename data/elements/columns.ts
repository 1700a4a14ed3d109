/**
 * Columns: elements are stacked leaf by leaf. Each leaf of the structure has a column that grows by
 * a row per element and becomes one tensor with a new first axis.
 */
import { dtypeOf, isFixedDType, isTypedArray } from "../../core/dtype.ts";
import { LeatError } from "../../core/error.ts";
import { Tensor } from "../../core/tensor.ts";
import { isPlainObject } from "../../core/tree.ts";
import { show } from "../check.ts";
import {
  type Column,
  component,
  differentKinds,
  NullColumn,
  numberDType,
  ScalarColumn,
  TensorColumn,
  TextColumn,
  TextTensorColumn,
  WideNumberColumn,
} from "./leaf_columns.ts";
import { type ElementSpec, isTuple, TensorSpec } from "./spec.ts";

/** Makes the columns of leaves. */
export interface LeafColumns {
  columnOf(leaf: unknown, spec: ElementSpec, capacity: number, path: string): Column;
  /** The `LeafColumns` for the leaves below a key of the structure. */
  below(key: string | number, path: string): LeafColumns;
}

const STACKED: LeafColumns = { columnOf: stackedColumn, below: () => STACKED };

/** Columns for elements like this one, with space for `capacity` rows. */
export function columnFor(
  element: unknown,
  spec: ElementSpec,
  capacity: number,
  path = "",
  leaves: LeafColumns = STACKED,
): Column {
  const partOf = (key: string | number, part: unknown, spec: ElementSpec, path: string) =>
    columnFor(part, spec, capacity, path, leaves.below(key, path));
  if (Array.isArray(element)) {
    const known = isTuple(spec) ? spec : [];
    const parts = Array.from( // reads a hole as `undefined`
      element,
      (part, i) => partOf(i, part, known[i], `${path}[${i}]`),
    );
    return new TupleColumn(parts, path);
  }
  if (!isPlainObject(element)) return leaves.columnOf(element, spec, capacity, path);
  const known = isPlainObject(spec) ? spec as Record<string, ElementSpec> : {};
  const keys = Object.keys(element);
  const parts = keys.map((key) => partOf(key, element[key], known[key], `${path}.${key}`));
  return new RecordColumn(keys, parts, path);
}

export function stackedColumn(
  element: unknown,
  spec: ElementSpec,
  capacity: number,
  path: string,
): Column {
  const dtype = spec instanceof TensorSpec ? spec.dtype : undefined;
  const wide = dtype === "int64" || dtype === "uint64" ? dtype : undefined;
  switch (typeof element) {
    case "number":
    case "bigint":
      if (wide !== undefined) return new WideNumberColumn(wide, capacity, path);
      return typeof element === "number"
        ? new ScalarColumn(numberDType(dtype), "number", capacity, path)
        : new ScalarColumn("int64", "bigint", capacity, path);
    case "boolean":
      return new ScalarColumn("bool", "boolean", capacity, path);
    case "string":
      return new TextColumn("string", path);
  }
  if (dtype === "bytes" && element instanceof Uint8Array) return new TextColumn("bytes", path);
  if (isTypedArray(element)) {
    return new TensorColumn(dtypeOf(element)!, [element.length], capacity, path);
  }
  if (element instanceof Tensor) {
    return isFixedDType(element.dtype)
      ? new TensorColumn(element.dtype, element.shape, capacity, path)
      : new TextTensorColumn(element.dtype, element.shape, path);
  }
  if (element === null) return new NullColumn(path);
  throw new LeatError(
    "invalid_argument",
    `Cannot batch ${show(element)} in ${component(path)}; elements are numbers, bigints, ` +
      `booleans, strings, typed arrays and tensors in plain objects and arrays. A function must ` +
      `return one of these; to give several elements, return a Dataset from flatMap.`,
  );
}

class TupleColumn implements Column {
  readonly #parts: readonly Column[];
  readonly #path: string;

  constructor(parts: readonly Column[], path: string) {
    this.#parts = parts;
    this.#path = path;
  }

  write(index: number, value: unknown): void {
    const parts = this.#parts;
    if (!Array.isArray(value) || value.length !== parts.length) {
      throw differentKinds(this.#path, `an array of ${parts.length}`, index, value);
    }
    for (let i = 0; i < parts.length; i++) parts[i]!.write(index, value[i]);
  }

  writeRows(index: number, batch: unknown, count: number): boolean {
    const parts = this.#parts;
    return Array.isArray(batch) && batch.length === parts.length &&
      parts.every((part, i) => part.writeRows?.(index, batch[i], count) === true);
  }

  read(index: number): unknown[] {
    return this.#parts.map((part) => part.read(index));
  }

  finish(count: number): unknown[] {
    return this.#parts.map((part) => part.finish(count));
  }
}

class RecordColumn implements Column {
  readonly #keys: readonly string[];
  readonly #parts: readonly Column[];
  readonly #path: string;

  constructor(keys: readonly string[], parts: readonly Column[], path: string) {
    this.#keys = keys;
    this.#parts = parts;
    this.#path = path;
  }

  write(index: number, value: unknown): void {
    if (!isPlainObject(value)) {
      throw differentKinds(this.#path, `an object of {${this.#keys.join(", ")}}`, index, value);
    }
    const keys = Object.keys(value);
    if (keys.length !== this.#keys.length) throw this.#differentKeys(index, keys);
    for (let i = 0; i < this.#keys.length; i++) {
      const key = this.#keys[i]!;
      if (!Object.hasOwn(value, key)) throw this.#differentKeys(index, keys);
      this.#parts[i]!.write(index, value[key]);
    }
  }

  writeRows(index: number, batch: unknown, count: number): boolean {
    if (!isPlainObject(batch) || Object.keys(batch).length !== this.#keys.length) return false;
    return this.#keys.every((key, i) =>
      Object.hasOwn(batch, key) && this.#parts[i]!.writeRows?.(index, batch[key], count) === true
    );
  }

  read(index: number): Record<string, unknown> {
    return Object.fromEntries(this.#keys.map((key, i) => [key, this.#parts[i]!.read(index)]));
  }

  finish(count: number): Record<string, unknown> {
    return Object.fromEntries(this.#keys.map((key, i) => [key, this.#parts[i]!.finish(count)]));
  }

  #differentKeys(index: number, keys: readonly string[]): LeatError {
    return new LeatError(
      "invalid_argument",
      `Cannot batch elements of different structure in ${component(this.#path)}. First element ` +
        `had {${this.#keys.join(", ")}} and element ${index} has {${keys.join(", ")}}.`,
    );
  }
}
