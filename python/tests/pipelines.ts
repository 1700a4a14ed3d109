/** Pipelines that the tests read. */
import { Dataset, RaggedTensor, Tensor, tensor } from "@leat/leat";

const DTYPES = [
  "int8",
  "uint8",
  "int16",
  "uint16",
  "int32",
  "uint32",
  "float16",
  "float32",
  "float64",
] as const;

/** An element with everything that elements may have. */
export const everything = Dataset.from([{
  ...Object.fromEntries(DTYPES.map((dtype) => [dtype, tensor([[1, 2, 3], [4, 5, 6]], { dtype })])),
  int64: tensor([-(2n ** 53n) - 1n, 2n], { dtype: "int64" }),
  uint64: tensor([2n ** 64n - 1n], { dtype: "uint64" }),
  bool: tensor([true, false], { dtype: "bool" }),
  string: tensor([["a", "ü"], ["", "𝄞"]]),
  bytes: new Tensor("bytes", [2], [new Uint8Array([1, 2]), new Uint8Array()]),
  ragged: new RaggedTensor(tensor([1, 2, 3]), new BigInt64Array([0n, 2n, 2n, 3n])),
  text: "text",
  number: 7,
  fraction: 0.5,
  big: 2n ** 40n,
  yes: true,
  nothing: null,
  short: new Uint8Array([1, 2, 3]),
  long: new Uint8Array(300).fill(7),
  list: [new Float32Array([1.5]), { deep: [1] }],
  scalar: tensor(3, { dtype: "int32" }),
  empty: tensor([], { dtype: "float32" }),
}]);

/** Small batches: many in a message. */
export const numbers = ({ count, size = 4 }: { count: number; size?: number }) =>
  Dataset.range(count).shuffle(64).map((x, { random }) => ({ x, r: random.next() })).batch(size);

/** Ids from 2^24, of which float32 has every other one. */
export const ids = Dataset.range(4).map((x) => ({ of: [{ id: 2 ** 24 + x }] })).batch(2);

/** The argument as text. */
export const json = (given: unknown) => Dataset.from([JSON.stringify(given)]);

/** Batches of a megabyte, each in a slot: batch i is filled with i. */
export const large = ({ count }: { count: number }) =>
  Dataset.range(count).map((i) => ({ i, x: new Float32Array(262_144).fill(i) }));

/** A shuffle buffer of rows that cannot be computed again: its state has their content. */
export const held = Dataset.fromGenerator(function* () {
  for (let x = 0;; x++) yield new Float32Array(2_000).fill(x);
}).shuffle(50).batch(3);

/** Elements of 12 KB, all of which the state has. */
export const cached = ({ count }: { count: number }) =>
  Dataset.range(count).map((x) => ({ x, data: new Float32Array(3_000) })).cache();

/** Large elements between small ones, all of which the state has. */
export const mixed = Dataset.range(60)
  .map((x) => ({ x, data: new Float32Array(x % 2 === 1 ? 20_000 : 10) })).cache();

/** The lines of files. */
export const lines = ({ files }: { files: string }) =>
  Dataset.listFiles(files).interleave((file, { Dataset }) => Dataset.textLines(file))
    .map((line) => ({ line }));

/** A shuffle buffer of elements that no state can have. */
export const unsavable = Dataset.fromGenerator(function* () {
  for (let i = 0;; i++) yield { i, when: new Date(0) };
}).shuffle(50).map(({ i }) => ({ i, x: new Float32Array(1_000) }));

/** Element 2 fails. */
export const failing = Dataset.range(5).map((x) => {
  if (x === 2) throw new RangeError(`no ${x} today`);
  return x;
});

/** Three elements cannot be sent, among small ones that are sent together. */
export const unsendable = Dataset.range(100).map((x) => {
  if (x === 40) return { x, "\ud800": x };
  if (x === 57) return { x, when: new Date(0) };
  return x === 60 ? new Uint8Array(1.2e9) : { x };
});

export const remote = Dataset.textLines("http://127.0.0.1:6123/lines.txt");

export function throwing(): never {
  throw new TypeError("cannot be built");
}

/** The second element never comes. */
export const stuck = Dataset.range(3).map((x) => {
  while (x > 0);
  return x;
});

/** The second element never comes, but the helper is idle. */
export const waiting = Dataset.range(3).map(async (x) => {
  if (x > 0) await new Promise(() => {});
  return x;
});

/** The second element comes late. */
export const late = Dataset.range(3).map(async (x) => {
  if (x > 0) await new Promise((resolve) => setTimeout(resolve, 700));
  return x;
});

/** Many batches that are ready at once, each in a slot. */
export const ready = Dataset.from([new Uint8Array(6_000_000).fill(1)]).repeat(300);

export const endless = Dataset.range(10).repeat();

let running = 0;

/** Numbers, and how many iterators of this process are being read. */
export const counted = Dataset.fromGenerator(async function* () {
  running++;
  try {
    for (let i = 0;; i++) {
      await new Promise((resolve) => setTimeout(resolve));
      yield { i, running };
    }
  } finally {
    running--;
  }
});

/** Each element is printed, and written to standard output, by a thread. */
export const printed = ({ thread }: { thread: boolean }) => {
  const lines = Dataset.range(40).map((x) => {
    console.log(`printed ${x}`);
    Deno.stdout.writeSync(new TextEncoder().encode(`written ${x}\n`));
    return x;
  }, { numParallelCalls: thread ? 1 : 2 }).batch(10);
  return thread ? lines.prefetch(2, { thread: true }) : lines.withOptions({ threads: true });
};

/** Numbers whose order depends on the process: with `late`, other calls overtake the even ones. */
export function overtaking({ late, nested = false }: { late: boolean; nested?: boolean }) {
  const call = async (x: number) => {
    if (late && x % 2 === 0) await new Promise((resolve) => setTimeout(resolve));
    return x;
  };
  const range = Dataset.range(40);
  const options = { numParallelCalls: 8, deterministic: false };
  if (!nested) return range.map(call, options);
  return Dataset.range(1).flatMap(() => range.map(call, options));
}

/** Rows of text of different lengths. */
export const raggedText = Dataset.from([
  new RaggedTensor(tensor(["a", "b", "c"]), new BigInt64Array([0n, 2n, 3n])),
]);

/** The module itself names the service. */
export const distributed = ({ service }: { service: string }) =>
  Dataset.range(10).repeat().distribute({ service, processingMode: "DYNAMIC" }).batch(4);

export const offloaded = ({ service }: { service: string }) =>
  Dataset.range(10).repeat().map((x) => x + 1).batch(4)
    .offload({ service, plan: { candidate: "p'2", ratio: 0.5 } });

/** A function reads them from a service, in no fixed order. */
export const opened = ({ service, free = false }: { service: string; free?: boolean }) => {
  const numbers = Dataset.range(1).flatMap(
    (_, { Dataset, service }) =>
      Dataset.range(20).distribute({ service, processingMode: "DYNAMIC" }),
    { captures: { service } },
  );
  return free ? numbers.withOptions({ deterministic: false }) : numbers;
};
