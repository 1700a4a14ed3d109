/** Elements whose memory the training loop gives back. */
import { Dataset, LocalCluster, releaseElement, type Tensor, tensor } from "../../../mod.ts";
import { assert, assertEquals } from "../../assert.ts";

const LENGTH = 200_000;

/** Elements of `LENGTH` equal bytes: 0, 1, 2, 3. */
function elements(service: LocalCluster) {
  const x = tensor(Uint8Array.from({ length: 4 * LENGTH }, (_, at) => at / LENGTH));
  return Dataset.fromTensorSlices({ x: x.reshape([4, LENGTH]) })
    .distribute({ service, compression: "none" });
}

function dataOf({ x }: { readonly x: unknown }): Uint8Array {
  return (x as Tensor<"uint8">).data;
}

function firstOf(data: Uint8Array): number {
  assertEquals(data.length, LENGTH);
  assert(data.every((byte) => byte === data[0]));
  return data[0]!;
}

for (const carrier of ["inline", "thread", "websocket"] as const) {
  Deno.test(`releaseElement frees one element and no other (${carrier})`, async () => {
    await using cluster = await LocalCluster.start({ workers: 1, carrier });
    const values: number[] = [];
    const arrays: Uint8Array[] = [];
    for await (const element of elements(cluster)) {
      const data = dataOf(element);
      arrays.push(data);
      values.push(firstOf(data));
      // A second call does nothing.
      if (arrays.length % 2 === 0) {
        for (let times = 0; times < 2; times++) releaseElement(element);
      }
    }
    assertEquals(values.toSorted(), [0, 1, 2, 3]);
    assertEquals(arrays.map(({ length }) => length), [LENGTH, 0, LENGTH, 0]);
    assertEquals([0, 2].map((at) => firstOf(arrays[at]!)), [values[0]!, values[2]!]);
  });
}

Deno.test("releaseElement leaves elements that a cache keeps", async () => {
  await using cluster = await LocalCluster.start({ workers: 1, carrier: "websocket" });
  const cached = elements(cluster).cache();
  for (let epoch = 0; epoch < 2; epoch++) {
    const values: number[] = [];
    for await (const element of cached) {
      releaseElement(element);
      values.push(firstOf(dataOf(element)));
    }
    assertEquals(values.sort(), [0, 1, 2, 3]);
  }
});

for (const operator of ["flatMap", "interleave"] as const) {
  Deno.test(`releaseElement leaves elements that ${operator} may give again`, async () => {
    await using cluster = await LocalCluster.start({ workers: 1, carrier: "websocket" });
    const twice = elements(cluster)[operator]((element) => Dataset.from([element]).repeat(2));
    const values: number[] = [];
    for await (const element of twice) {
      values.push(firstOf(dataOf(element as { x: unknown })));
      releaseElement(element);
    }
    assertEquals(values.toSorted(), [0, 0, 1, 1, 2, 2, 3, 3]);
  });
}
