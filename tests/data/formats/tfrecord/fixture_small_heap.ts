/**
 * Parses examples of a million parts, names or numbers. It runs in a process of its own, with a heap in
 * which a list of them has no place.
 */
import { concat } from "../reading.ts";
import { parseExample } from "../../../../data/mod.ts";

const FEATURES = { a: { dtype: "int64", shape: [null] } } as const;

/** A field with a length, as protocol buffers write it. */
function field(number: number, contents: Uint8Array): Uint8Array {
  const head = [number << 3 | 2];
  let { length } = contents;
  for (; length >= 0x80; length >>>= 7) head.push(length & 0x7f | 0x80);
  return concat(new Uint8Array([...head, length]), contents);
}

/** A million empty fields with this number. */
function empty(number: number): Uint8Array {
  return Uint8Array.from({ length: 2_000_000 }, (_, i) => i % 2 === 0 ? number << 3 | 2 : 0);
}

function example(lists: Uint8Array): Uint8Array {
  const name = field(1, new TextEncoder().encode("a"));
  return field(1, field(1, concat(name, field(2, lists))));
}

/** Ten thousand features without values, whose names occur nowhere else. */
function manyNames(_: unknown, block: number): Uint8Array {
  const entries = Array.from({ length: 10_000 }, (_, i) => {
    const name = new TextEncoder().encode(`${block}-${i}`);
    return field(1, field(1, name));
  });
  return field(1, concat(...entries));
}

const list = field(3, field(1, new Uint8Array([7])));
const ofEntries = concat(field(1, empty(1)), example(list));
const ofNames = concat(...Array.from({ length: 30 }, manyNames), example(list));
for (const bytes of [ofEntries, ofNames, example(concat(empty(3), list))]) {
  console.log(`parsed ${parseExample(bytes, FEATURES).a.data}`);
}
const numbers = example(field(3, field(1, new Uint8Array(2_000_000))));
console.log(`parsed ${parseExample(numbers, FEATURES).a.data.length} numbers`);
