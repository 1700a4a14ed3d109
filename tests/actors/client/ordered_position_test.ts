/** Saved states of a DETERMINISTIC stream that are no position in it. */
import { encodeIteration, identityOf } from "../../../data/checkpoint/saving.ts";
import { Dataset, LeatError } from "../../../mod.ts";
import { assertEquals, assertRejects } from "../../assert.ts";

const numbers = () =>
  Dataset.range(10).distribute({
    service: "ws://127.0.0.1:1",
    processingMode: "DETERMINISTIC",
  });

const PLACE = {
  ...{ sequence: 2, given: 1, carried: [{ sequence: 1, rows: 1 }] },
  ...{ digest: "d", ended: false, number: 3 },
};

/** A saved iterator with this state and a valid checksum. */
function savedWith(state: unknown): Uint8Array {
  const coordinates = { seed: 1n, seeded: false, salt: 0n, epoch: 0, split: 0 };
  return encodeIteration(identityOf(numbers().node), { ...coordinates, shared: [], state });
}

Deno.test("restore accepts a position in a stream, and refuses anything else before dialling", async () => {
  await using iterator = numbers().iterator();
  await iterator.restore(savedWith(PLACE));
  const wrong = [
    ...[{ sequence: -1 }, { sequence: "2" }, { given: 0.5 }, { given: NaN }, { number: -3 }],
    ...[{ carried: null }, { carried: [1] }, { carried: [{ sequence: 1, rows: -1 }] }],
    ...[{ digest: 4 }, { ended: "no" }],
  ];
  for (const part of wrong) {
    const error = await assertRejects(
      () => iterator.restore(savedWith({ ...PLACE, ...part })),
      LeatError,
      "holds no position in a stream",
    );
    assertEquals(error.code, "invalid_argument", Deno.inspect(part));
  }
});
