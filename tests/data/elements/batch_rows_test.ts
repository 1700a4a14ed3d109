/** Results that are written where their batch needs them. */

import { assert, assertEquals } from "../../assert.ts";
import { Tensor } from "../../../core/tensor.ts";
import { BatchMemory, BatchRows, RowPlace } from "../../../data/elements/batch_rows.ts";
import { columnFor } from "../../../data/elements/columns.ts";

const SIZE = 3;

function unseenRows(): BatchRows {
  return Object.assign(new BatchRows(SIZE), { areUnseen: true });
}

/** A function that returns what it was offered, as `map` calls it. */
class Calls {
  readonly rows = unseenRows();
  #count = 0;

  /** What the next call makes: its number, twice. */
  one(): Tensor<"float32"> {
    const place = new RowPlace();
    this.rows.offer(place);
    this.rows.endCall();
    const values = place.memory("float32", 2) ?? new Float32Array(2);
    return new Tensor("float32", [2], values.fill(this.#count++));
  }
}

function batchOf(elements: readonly Tensor[]): Tensor {
  const column = columnFor(elements[0], undefined, SIZE);
  for (const [index, element] of elements.entries()) column.write(index, element);
  return column.finish(elements.length) as Tensor;
}

function isShared(batch: Tensor, elements: readonly Tensor[]): boolean {
  const { buffer } = batch.data as Float32Array;
  return elements.every(({ data }) => (data as Float32Array).buffer === buffer);
}

function take(calls: Calls, count: number): Tensor<"float32">[] {
  return Array.from({ length: count }, () => calls.one());
}

Deno.test("the rows of a batch are written to its memory", () => {
  const calls = new Calls();
  for (let number = 0; number < 5 * SIZE; number += SIZE) {
    const elements = take(calls, SIZE);
    const batch = batchOf(elements);
    assertEquals(batch.toArray(), [0, 1, 2].map((row) => [number + row, number + row]));
    assert(isShared(batch, elements));
  }
});

Deno.test("a batch without one of its rows is copied, and later ones are written in place", () => {
  for (let lost = 0; lost < 2 * SIZE; lost++) {
    const calls = new Calls();
    const elements = take(calls, 2 * SIZE);
    elements.splice(lost, 1);
    const shared: boolean[] = [];
    for (let batches = 0; batches < 8; batches++) {
      while (elements.length < SIZE + 2) elements.push(calls.one()); // some are made ahead
      const rows = elements.splice(0, SIZE);
      const expected = rows.map((row) => row.toArray());
      const batch = batchOf(rows);
      assertEquals(batch.toArray(), expected);
      assertEquals(rows.map((row) => row.toArray()), expected);
      shared.push(isShared(batch, rows));
    }
    assert(shared.slice(-3).every(Boolean), `lost ${lost}: ${shared}`);
  }
});

Deno.test("calls further ahead than 16 batches still write to batches, also after one has failed", () => {
  for (const failed of [-1, 100]) {
    const calls = new Calls();
    const ahead: Tensor<"float32">[] = [];
    const shared: boolean[] = [];
    for (let batches = 0; batches < 120; batches++) {
      while (ahead.length < 40 * SIZE) ahead.push(calls.one());
      const elements = ahead.splice(0, SIZE);
      const at = elements.findIndex(({ data }) => data[0] === failed);
      if (at >= 0) elements.push(...ahead.splice(0, elements.splice(at, 1).length));
      shared.push(isShared(batchOf(elements), elements));
      assertEquals(calls.rows.memory() !== undefined, shared.at(-1));
    }
    assert(shared.slice(0, 33).every(Boolean), `failed ${failed}: ${shared}`);
    assert(shared.slice(-46).every(Boolean), `failed ${failed}: ${shared}`);
  }
});

Deno.test("no more memory is allocated once many finished batches in a row did not use theirs", () => {
  const calls = new Calls();
  for (let batches = 0; batches < 30; batches++) {
    batchOf(take(calls, SIZE).reverse());
    calls.rows.memory();
  }
  const elements = take(calls, 2 * SIZE);
  assertEquals(new Set(elements.map(({ data }) => data.buffer)).size, 2 * SIZE);
});

Deno.test("rows in another order keep their values", () => {
  const calls = new Calls();
  for (const order of [[0, 2, 1], [1, 0, 2], [2, 1, 0], [0, 1, 2], [1, 2, 0]]) {
    const elements = take(calls, SIZE);
    const rows = order.map((index) => elements[index]!);
    const expected = rows.map((row) => row.toArray());
    assertEquals(batchOf(rows).toArray(), expected);
    assertEquals(rows.map((row) => row.toArray()), expected);
  }
});

Deno.test("the memory of a batch is used by one batch only", () => {
  const elements = take(new Calls(), SIZE);
  assert(isShared(batchOf(elements), elements));
  const again = batchOf(elements);
  assert(!isShared(again, elements));
  assertEquals(again.toArray(), [[0, 0], [1, 1], [2, 2]]);
});

Deno.test("a batch that is not full is a copy", () => {
  const elements = take(new Calls(), SIZE - 1);
  const batch = batchOf(elements);
  assertEquals(batch.toArray(), [[0, 0], [1, 1]]);
  assertEquals(batch.data.length, 4);
});

Deno.test("only a result that the function has not seen gets a row", () => {
  const rows = new BatchRows(SIZE), place = new RowPlace();
  rows.offer(place);
  rows.endCall();
  assertEquals(place.memory("uint8", 4), undefined);
  rows.areUnseen = true;
  rows.endCall(); // it was another call's
  assertEquals(place.memory("uint8", 4), undefined);
});

Deno.test("results of different sizes have memory of their own", () => {
  const rows = unseenRows();
  const memories = [4, 5].map((length) => {
    const place = new RowPlace();
    rows.offer(place);
    rows.endCall();
    return place.memory("uint8", length);
  });
  assertEquals(memories.map((memory) => memory?.length), [4, undefined]);
});

Deno.test("BatchMemory keeps all shared memory that it gets back, and shares a limited amount", () => {
  const memory = new BatchMemory(true);
  const taken: Uint8Array[] = [];
  const isShared = ({ buffer }: Uint8Array) => buffer instanceof SharedArrayBuffer;
  const take = () => taken.push(memory.take("uint8", 128 << 20) as Uint8Array);
  for (let i = 0; i < 9; i++) take();
  assertEquals(taken.map(isShared), [...Array(8).fill(true), false]);
  const buffers = new Set(taken.slice(0, 5).map(({ buffer }) => buffer));
  for (const data of taken.splice(0, 5)) memory.give(data);
  for (let i = 0; i < 6; i++) take();
  assertEquals(new Set(taken.slice(-6, -1).map(({ buffer }) => buffer)), buffers);
  assertEquals(isShared(taken.at(-1)!), false);
});
