/** An element shares no memory with later ones: its consumer may transfer it or change it in place. */
import {
  Dataset,
  type ElementSpec,
  LeatError,
  RaggedTensor,
  Tensor,
  TensorSpec,
} from "../../../../mod.ts";
import { copyTree } from "../../../../core/tree.ts";
import { assert, assertEquals } from "../../../assert.ts";
import fc from "../../../lib/properties.ts";
import { plain } from "../../lib/outcomes.ts";

/** The buffers of an element. */
function buffersOf(element: unknown): Set<ArrayBuffer> {
  const buffers = new Set<ArrayBuffer>();
  const visit = (part: unknown): void => {
    if (ArrayBuffer.isView(part)) buffers.add(part.buffer as ArrayBuffer);
    else if (typeof part === "object" && part !== null) Object.values(part).forEach(visit);
  };
  visit(element);
  return buffers;
}

/** What a consumer does with an element that it has read. */
const USES = {
  keep() {},
  overwrite(element: unknown) {
    for (const buffer of buffersOf(element)) new Uint8Array(buffer).fill(0xaa);
  },
  transfer(element: unknown) {
    structuredClone(null, { transfer: [...buffersOf(element)] });
  },
};

/** All elements and errors. Each element is used before the next one is read. */
async function outcomes(dataset: Dataset<unknown>, use: (element: unknown) => void) {
  const read: unknown[] = [];
  await using iterator = dataset.iterator();
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) return read;
      read.push(copyTree(await plain(value)));
      use(value);
    } catch (error) {
      read.push(`error ${LeatError.from(error).message}`);
    }
  }
}

async function assertOwnMemory(make: () => Dataset<unknown>, mayFail = false): Promise<void> {
  const untouched = await outcomes(make(), USES.keep);
  assert(mayFail || untouched.every((outcome) => typeof outcome !== "string"), `${untouched}`);
  for (const use of ["overwrite", "transfer"] as const) {
    assertEquals(await outcomes(make(), USES[use]), untouched, use);
  }
}

/** Arrays of the values from `first` on, all views of one buffer, as in a message. */
class Message {
  readonly #bytes: Uint8Array<ArrayBuffer>;
  #at = 0;

  constructor(first: number) {
    this.#bytes = Uint8Array.from({ length: 1024 }, (_, i) => (first + i) % 128);
  }

  bytes(length: number): Uint8Array {
    return this.#bytes.subarray(this.#at, this.#at += length);
  }

  numbers(...shape: number[]): Tensor {
    return new Tensor("uint8", shape, this.bytes(shape.reduce((a, b) => a * b)));
  }

  texts(...shape: number[]): Tensor {
    const count = shape.reduce((a, b) => a * b);
    return new Tensor("bytes", shape, Array.from({ length: count }, (_, i) => this.bytes(i % 3)));
  }

  ragged(rows: number, values: (count: number) => Tensor): RaggedTensor {
    const splits = BigInt64Array.from({ length: rows + 1 }, (_, i) => BigInt(i * (i + 1) / 2));
    return new RaggedTensor(values(Number(splits[rows])), splits);
  }
}

/** Components of batches of `rows` rows, whose rows have the given shape. */
const COMPONENTS: Record<
  string,
  readonly [TensorSpec, (message: Message, rows: number) => unknown]
> = {
  scalar: [new TensorSpec("uint8", []), (message, rows) => message.bytes(rows)],
  matrix: [new TensorSpec("uint8", [2]), (message, rows) => message.numbers(rows, 2)],
  byteString: [new TensorSpec("bytes", []), (message, rows) => message.texts(rows)],
  byteStrings: [new TensorSpec("bytes", [2]), (message, rows) => message.texts(rows, 2)],
  string: [
    new TensorSpec("string", []),
    (_, rows) => new Tensor("string", [rows], Array.from({ length: rows }, (_, i) => `${i}`)),
  ],
  ragged: [
    new TensorSpec("uint8", [null]),
    (message, rows) => message.ragged(rows, (count) => message.numbers(count)),
  ],
  raggedByteStrings: [
    new TensorSpec("bytes", [null]),
    (message, rows) => message.ragged(rows, (count) => message.texts(count)),
  ],
};

type Name = keyof typeof COMPONENTS;

/** Batches of the given numbers of rows with these components. */
function batchesOf(names: readonly Name[], rows: readonly number[]): Dataset<unknown> {
  const record = (part: (name: Name) => unknown) =>
    Object.fromEntries(names.map((name) => [name, part(name)]));
  const spec = record((name) => {
    const { dtype, shape } = COMPONENTS[name]![0];
    return new TensorSpec(dtype, [null, ...shape]);
  }) as Record<string, TensorSpec>;
  return Dataset.range(rows.length).map((i) => {
    const message = new Message(37 * i);
    return record((name) => COMPONENTS[name]![1](message, rows[i]!));
  }, { spec });
}

type Change = (input: Dataset<unknown>) => Dataset<unknown>;

/** Overlapping windows, as elements one after the other or in batches. */
function windows(batched: boolean): Change {
  return (input) =>
    input.window(3, { shift: 2 }).flatMap((window) => {
      const parts = window as Readonly<Record<string, Dataset<unknown>>>;
      return batched ? Dataset.zip(parts).raggedBatch(2) : Dataset.zip(parts);
    }, batched ? {} : { spec: input.elementSpec as ElementSpec }) as Dataset<unknown>;
}

/** A function that changes in place what it gets. */
const overwriting: Change = (input) =>
  input.map((element) => {
    const copy = copyTree(element);
    USES.overwrite(element);
    return copy;
  }, { spec: input.elementSpec as ElementSpec });

const CHAINS: Readonly<Record<string, Change>> = {
  "rebatch of parts of one batch": (input) => input.rebatch(2),
  "rebatch of parts of several batches": (input) => input.rebatch(7),
  "rebatch of both, and empty batches": (input) => input.rebatch([1, 0, 5]),
  "unbatch": (input) => input.unbatch(),
  "unbatch and raggedBatch": (input) => input.unbatch().raggedBatch(3),
  "unbatch and paddedBatch": (input) => input.unbatch().paddedBatch(3),
  "raggedBatch and rebatch": (input) => input.unbatch().raggedBatch(3).rebatch(4),
  "rebatch and unbatch": (input) => input.rebatch(3).unbatch(),
  "rebatch, unbatch and raggedBatch": (input) => input.rebatch(3).unbatch().raggedBatch(2),
  "bucketBySequenceLength": (input) =>
    input.unbatch().bucketBySequenceLength({
      length: () => 1,
      boundaries: [2],
      batchSizes: [3, 3],
    }),
  "padToCardinality": (input) =>
    (input.unbatch() as Dataset<Record<string, unknown>>).padToCardinality(20),
  "windows": (input) => windows(false)(input.unbatch()),
  "windows and raggedBatch": (input) => windows(true)(input.unbatch()),
  "rebatch before a function that overwrites its argument": (input) =>
    overwriting(input.rebatch(3)),
  "unbatch before a function that overwrites its argument": (input) => overwriting(input.unbatch()),
};
const DENSE_CHAINS: Readonly<Record<string, Change>> = {
  "unbatch and batch": (input) => input.unbatch().batch(3),
  "batch and rebatch": (input) => input.unbatch().batch(3).rebatch(4),
  "rebatch and batch": (input) => input.rebatch(3).batch(2),
  "pack that pads rows": (input) => input.pack({ length: 7 }),
  "pack that splits sequences": (input) => input.pack({ length: 4, overflow: "split" }),
  "paddedBatch and rebatch": (input) => input.unbatch().paddedBatch(3).rebatch([2, 3]),
};

/** Names of components whose rows have one shape. */
const DENSE: readonly Name[] = Object.keys(COMPONENTS).filter((name) =>
  !COMPONENTS[name]![0].shape.includes(null)
);

for (const [chain, change] of Object.entries({ ...CHAINS, ...DENSE_CHAINS })) {
  Deno.test(`${chain}: no later element changes if one is transferred or overwritten`, async () => {
    const names = chain in DENSE_CHAINS ? DENSE : Object.keys(COMPONENTS);
    for (const used of [names, ...names.map((name) => [name])]) {
      await assertOwnMemory(() => change(batchesOf(used, [4, 5, 1, 6, 2])));
    }
  });
}

/** The operators of random chains, by `size`. */
const STEPS: Readonly<Record<string, (input: Dataset<unknown>, size: number) => Dataset<unknown>>> =
  {
    rebatch: (input, size) => input.rebatch(size),
    rebatches: (input, size) => input.rebatch([size, 0, 3]),
    unbatch: (input) => input.unbatch(),
    batch: (input, size) => input.batch(size),
    paddedBatch: (input, size) => input.paddedBatch(size),
    raggedBatch: (input, size) => input.raggedBatch(size),
    windows: windows(false),
    "windows and raggedBatch": windows(true),
    overwriting,
  };

Deno.test("any chain of batching operators: no later element changes if one is transferred or overwritten", async () => {
  let chains = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.subarray(Object.keys(COMPONENTS), { minLength: 1 }),
      fc.array(fc.nat(6), { minLength: 1, maxLength: 5 }),
      fc.array(fc.tuple(fc.constantFrom(...Object.keys(STEPS)), fc.integer({ min: 1, max: 5 })), {
        minLength: 1,
        maxLength: 4,
      }),
      async (names, rows, steps) => {
        const make = () =>
          steps.reduce((input, [step, size]) => STEPS[step]!(input, size), batchesOf(names, rows));
        try {
          make();
        } catch {
          return; // an operator refuses its input by the spec
        }
        chains++;
        await assertOwnMemory(make, true);
      },
    ),
    { numRuns: 400 },
  );
  assert(chains > 100, `${chains}`);
});
