/** `tf.train.Example`: bytes written by TensorFlow, every kind of feature, and mismatches. */

import { BinaryWriter } from "@bufbuild/protobuf/wire";
import {
  assert,
  assertEquals,
  assertInstanceOf,
  assertStringIncludes,
  assertThrows,
} from "../../../assert.ts";
import { LeatError } from "../../../../core/error.ts";
import { tensor } from "../../../../core/tensor.ts";
import { Dataset, encodeExample, parseExample, TensorSpec } from "../../../../data/mod.ts";
import { FEATURE_VALUES_MAX } from "../../../../data/formats/tfrecord/example.ts";
import { startChild } from "../../../lib/child.ts";
import { collectWithErrors } from "../../lib/collect.ts";
import { concat } from "../reading.ts";

const latin1 = (text: string) => Uint8Array.from(text, (character) => character.charCodeAt(0));

/** The example of TensorFlow's tutorial on TFRecord, as Python printed it. */
const TUTORIAL = latin1(
  "\nR\n\x14\n\x08feature2\x12\x08\n\x06\n\x04goat\n\x11\n\x08feature0\x12\x05\x1a\x03\n\x01\x00" +
    "\n\x11\n\x08feature1\x12\x05\x1a\x03\n\x01\x04\n\x14\n\x08feature3\x12\x08\x12\x06\n\x04[\xd3|?",
);

function refusal(bytes: Uint8Array, features: Parameters<typeof parseExample>[1]): string {
  const error = assertThrows(() => parseExample(bytes, features));
  assertInstanceOf(error, LeatError);
  return `${error.code}: ${error.message}`;
}

Deno.test("parseExample reads what TensorFlow wrote", () => {
  const { feature0, feature1, feature2, feature3 } = parseExample(TUTORIAL, {
    feature0: "int64",
    feature1: { dtype: "int64", shape: [1] },
    feature2: "string",
    feature3: "float32",
  });
  assertEquals([feature0, feature2, feature3], [0n, "goat", Math.fround(0.9876)]);
  assertEquals(feature1, tensor([4n]));
});

Deno.test("encodeExample writes the bytes that TensorFlow does", () => {
  const written = encodeExample({
    feature2: "goat",
    feature0: false,
    feature1: 4n,
    feature3: 0.9876,
  });
  assertEquals(written, TUTORIAL);
});

Deno.test("encodeExample writes the floats of a feature at once", () => {
  const { float } = BinaryWriter.prototype;
  BinaryWriter.prototype.float = () => {
    throw new Error("wrote a single float");
  };
  try {
    const floats = [0.5, -0, NaN, Infinity, -Infinity, 3.4e38, 1e-46];
    const wanted = tensor(Float32Array.from(floats));
    for (const f of [floats, Float64Array.from(floats), wanted]) {
      assertEquals(parseExample(encodeExample({ f }), { f: { dtype: "float32", shape: [7] } }), {
        f: wanted,
      });
    }
    const error = assertThrows(() => encodeExample({ f: [Infinity, 1e39] }), LeatError);
    assertStringIncludes(error.message, `feature "f" has 1e+39`);
  } finally {
    BinaryWriter.prototype.float = float;
  }
});

Deno.test("numbers are read packed or not, in any order, and the last of two entries wins", () => {
  // features { feature { key: "n" value { int64_list { value: 1 value: 300 } } } }, values not
  // packed
  const unpacked = latin1("\n\x0e\n\x0c\n\x01n\x12\x07\x1a\x05\x08\x01\x08\xac\x02");
  const n = { dtype: "int64", shape: [null] } as const;
  assertEquals(parseExample(unpacked, { n }).n, tensor([1n, 300n]));
  // The value precedes the key, and of the floats one is packed and one is not.
  const swapped = latin1(
    "\n\x14\n\x12\x12\x0d\x12\x0b\n\x04\0\0\x80?\x0d\0\0\0@\n\x01x",
  );
  const x = { dtype: "float32", shape: [2] } as const;
  assertEquals([...parseExample(swapped, { x }).x.data], [1, 2]);
  const twice = new Uint8Array([...encodeExample({ a: 1n }), ...encodeExample({ a: 2n })]);
  assertEquals(parseExample(twice, { a: "int64" }).a, 2n);
  const unknown = new Uint8Array([...encodeExample({ a: 1n }), 0x78, 0x05]);
  assertEquals(parseExample(unknown, { a: "int64" }).a, 1n);
});

Deno.test("values of every kind are read back, single, of fixed shape and of any length", () => {
  const bytes = encodeExample({
    negative: -1n,
    largest: 2n ** 63n - 1n,
    flags: [true, false],
    ints: new Int32Array([1, -2, 3, 4]),
    floats: tensor(new Float32Array([1.5, -0, NaN])),
    image: new Uint8Array([1, 2, 3]),
    images: [new Uint8Array([1]), new Uint8Array()],
    text: "ünï 🙂",
    texts: tensor(["a", ""]),
    empty: "",
  });
  const parsed = parseExample(bytes, {
    negative: "int64",
    largest: "int64",
    flags: { dtype: "int64", shape: [2] },
    ints: { dtype: "int64", shape: [2, 2] },
    rows: { dtype: "int64", shape: [null, 2] },
    floats: { dtype: "float32", shape: [null] },
    image: "bytes",
    images: { dtype: "bytes", shape: [null] },
    text: "string",
    texts: { dtype: "string", shape: [2] },
    empty: "string",
  });
  assertEquals([parsed.negative, parsed.largest], [-1n, 2n ** 63n - 1n]);
  assertEquals(parsed.flags.toArray(), [1n, 0n]);
  assertEquals(parsed.ints.toArray(), [[1n, -2n], [3n, 4n]]);
  assertEquals(parsed.rows.shape, [0, 2]);
  assertEquals([...parsed.floats.data], [1.5, -0, NaN]);
  assertEquals(parsed.image, new Uint8Array([1, 2, 3]));
  assertEquals(parsed.images.data, [new Uint8Array([1]), new Uint8Array()]);
  assertEquals([parsed.text, parsed.texts.toArray(), parsed.empty], ["ünï 🙂", ["a", ""], ""]);
});

Deno.test("encodeExample refuses values beyond int64 and float32, and names feature and value", () => {
  const beyond = [
    [2n ** 63n, "9223372036854775808"],
    [-(2n ** 63n) - 1n, "-9223372036854775809"],
    [new BigUint64Array([1n, 2n ** 64n - 1n]), "18446744073709551615"],
    [1e39, "1e+39"],
    [[0, -1e39], "-1e+39"],
    [new Float64Array([1e300]), "1e+300"],
  ] as const;
  for (const [value, shown] of beyond) {
    const error = assertThrows(() => encodeExample({ ok: 1n, size: value }), LeatError);
    assertEquals(error.code, "invalid_argument");
    assert(error.message.includes(`feature "size" has ${shown},`), error.message);
  }
  const largest = { int: -(2n ** 63n), float: 3.4028235e38, infinite: -Infinity };
  const parsed = parseExample(encodeExample(largest), {
    int: "int64",
    float: "float32",
    infinite: "float32",
  });
  assertEquals(parsed, { ...largest, float: Math.fround(largest.float) });
});

Deno.test("defaults replace missing features, as one value for all or as all values", () => {
  const bytes = encodeExample({ unset: [] });
  const parsed = parseExample(bytes, {
    unset: { dtype: "int64", default: 5 },
    label: { dtype: "int64", default: 7n },
    weight: { dtype: "float32", default: 0.5 },
    name: { dtype: "string", default: "?" },
    image: { dtype: "bytes", default: new Uint8Array([9]) },
    box: { dtype: "float32", shape: [2, 2], default: 1 },
    ids: { dtype: "int64", shape: [2], default: [1, 2] },
    tokens: { dtype: "int64", shape: [null], default: [3] },
    none: { dtype: "string", shape: [null] },
  });
  assertEquals([parsed.unset, parsed.label, parsed.weight, parsed.name], [5n, 7n, 0.5, "?"]);
  assertEquals(parsed.image, new Uint8Array([9]));
  assertEquals(parsed.box.toArray(), [[1, 1], [1, 1]]);
  assertEquals([parsed.ids.toArray(), parsed.tokens.toArray()], [[1n, 2n], [3n]]);
  assertEquals(parsed.none.shape, [0]);
});

Deno.test("parseExample gives every example a default of its own", () => {
  const features = {
    box: { dtype: "float32", shape: [2], default: 1 },
    image: { dtype: "bytes", default: new Uint8Array([9]) },
    parts: { dtype: "bytes", shape: [1], default: [new Uint8Array([8])] },
  } as const;
  const parsed = () => parseExample(encodeExample({}), features);
  const first = parsed();
  first.box.data.fill(99);
  first.image.fill(99);
  first.parts.data[0]!.fill(99);
  const { box, image, parts } = parsed();
  assertEquals([box.toArray(), [...image], [...parts.data[0]!]], [[1, 1], [9], [8]]);
});

Deno.test("parseExample names features that are missing, or of another type or size", () => {
  const bytes = encodeExample({ a: [1n, 2n, 3n], b: 1.5 });
  assertStringIncludes(refusal(bytes, { c: "int64" }), 'data_loss: The example has no feature "c"');
  assertStringIncludes(refusal(bytes, { c: "int64" }), 'it has "a", "b"');
  const type = refusal(bytes, { b: "int64" });
  assertStringIncludes(type, 'Feature "b" holds floats (float_list), and int64 is expected');
  const size = refusal(bytes, { a: "int64" });
  assertStringIncludes(size, 'Feature "a" has 3 values, which do not make the shape []');
  const rows = refusal(bytes, { a: { dtype: "int64", shape: [null, 2] } });
  assertStringIncludes(rows, "the shape [null, 2]");
});

Deno.test("parseExample refuses a string that is not UTF-8, and keeps byte order marks", () => {
  const bytes = encodeExample({ good: "\ufeffa\ufffd", bad: new Uint8Array([0xff, 0xfe]) });
  const message = refusal(bytes, { bad: "string" });
  assertStringIncludes(message, 'data_loss: Feature "bad"');
  assertStringIncludes(message, 'declare it as "bytes"');
  assertEquals(parseExample(bytes, { good: "string", bad: "bytes" }), {
    good: "\ufeffa\ufffd",
    bad: new Uint8Array([0xff, 0xfe]),
  });
});

Deno.test("truncated and changed bytes are data_loss", () => {
  const whole = encodeExample({ a: [1n, 300n], b: [1.5, 2], c: "text" });
  const features = {
    a: { dtype: "int64", shape: [null] },
    b: { dtype: "float32", shape: [null] },
    c: { dtype: "string", shape: [null] },
  } as const;
  for (let length = 1; length < whole.length; length++) {
    assertStringIncludes(refusal(whole.subarray(0, length), features), "data_loss: These bytes");
  }
  for (let at = 0; at < whole.length; at++) {
    for (const flip of [1, 0x80, 0xff]) {
      const damaged = new Uint8Array(whole);
      damaged[at]! ^= flip;
      try {
        parseExample(damaged, features);
      } catch (error) {
        assertInstanceOf(error, LeatError);
        assertEquals(error.code, "data_loss");
      }
    }
  }
});

Deno.test("an example of a million parts, names or numbers takes no heap for each", async () => {
  await using child = startChild("tests/data/formats/tfrecord/fixture_small_heap.ts", {
    flags: ["-P", "--no-check", "--v8-flags=--max-old-space-size=48"],
  });
  for (let i = 0; i < 3; i++) await child.line(/^parsed 7$/);
  await child.line(/^parsed 2000000 numbers$/);
});

Deno.test("parseExample refuses a feature of more values than have place in memory", () => {
  /** A field with a length of four bytes. */
  const field = (number: number, contents: Uint8Array) => {
    const { length } = contents;
    const digits = [0, 7, 14, 21].map((bits) => length >>> bits & 0x7f | (bits < 21 ? 0x80 : 0));
    return concat(new Uint8Array([number << 3 | 2, ...digits]), contents);
  };
  const example = (count: number) => {
    const values = new Uint8Array(2 * count).map((_, i) => i % 2 === 0 ? 1 << 3 | 2 : 0);
    const name = field(1, new TextEncoder().encode("a"));
    return field(1, field(1, concat(name, field(2, field(1, values)))));
  };
  const features = { a: { dtype: "string", shape: [null] } } as const;
  assertEquals(parseExample(example(3), features).a.data, ["", "", ""]);
  const refused = refusal(example(FEATURE_VALUES_MAX + 1), features);
  assertStringIncludes(refused, "resource_exhausted: ");
  assertStringIncludes(refused, "(FEATURE_VALUES_MAX)");
});

Deno.test("features that cannot be read and values that cannot be written are refused by name", () => {
  const features: unknown[] = [
    { x: "float64" },
    { x: { dtype: "int64", shape: [2, null] } },
    { x: { dtype: "int64", shape: [-1] } },
    { x: { dtype: "int64", shape: [null, 0] } },
    { x: { dtype: "int64", default: "a" } },
    { x: { dtype: "int64", default: 0.5 } },
    { x: { dtype: "string", default: 1 } },
    { x: { dtype: "float32", shape: [2], default: [1, 2, 3] } },
    { x: null },
    7,
  ];
  for (const bad of features) {
    const message = refusal(new Uint8Array(), bad as { x: "int64" });
    assertStringIncludes(message, "invalid_argument: example.parse");
    if (bad !== 7) assertStringIncludes(message, '"x"');
  }
  for (const bad of [null, {}, [1, 2n], [[1]], undefined]) {
    const error = assertThrows(() => encodeExample({ x: bad as never })) as LeatError;
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, '"x"');
  }
});

Deno.test("parseExamples can be serialised, knows its spec, and loses only a bad example", async () => {
  const records = [{ a: 1n, b: [1, 2] }, { b: [0] }, { a: 3n, b: [3, 4] }].map(encodeExample);
  const dataset = Dataset.from(records).parseExamples({
    a: "int64",
    b: { dtype: "float32", shape: [2] },
  });
  const spec = { a: new TensorSpec("int64", []), b: new TensorSpec("float32", [2]) };
  assertEquals(dataset.elementSpec, spec);
  for (const copy of [dataset, Dataset.deserialize(dataset.serialize(), { trustPipeline: true })]) {
    assertEquals(await collectWithErrors(copy), [
      { a: 1n, b: [1, 2] },
      "error data_loss",
      { a: 3n, b: [3, 4] },
    ]);
    assertEquals(await collectWithErrors(copy.batch(2)), ["error data_loss", {
      a: [1n, 3n],
      b: [[1, 2], [3, 4]],
    }]);
  }
});

Deno.test("serialised functions get `example`", async () => {
  const made = Dataset.range(2)
    .map((x, { example }) => example.encode({ x: BigInt(x) }))
    .map((bytes, { example }) => example.parse(bytes, { x: "int64" }).x);
  const copy = Dataset.deserialize(made.serialize(), { trustPipeline: true });
  assertEquals(await collectWithErrors(copy), [0n, 1n]);
});
