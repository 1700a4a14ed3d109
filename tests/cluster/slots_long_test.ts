/** Batches that a trainer gets through a file that it shares with a worker process of its host. */
import { Dataset, type Tensor } from "../../mod.ts";
import { assert, assertEquals } from "../assert.ts";
import { all, soon, SOON_GIVEN_UP, startDispatcher, startWorker, startWorkers } from "./lib.ts";

const LENGTH = 300_000;

/** Reads elements of `LENGTH` equal bytes; their values, and the most bytes that came through slots. */
async function read(service: string, onElement: (count: number) => void = () => {}) {
  const iterator = Dataset.range(40).map(
    (x, { tensor, LENGTH }) => tensor(new Uint8Array(LENGTH).fill(x)),
    { captures: { LENGTH } },
  )
    .distribute({ service, processingMode: "DETERMINISTIC", compression: "none" }).iterator();
  const values: number[] = [];
  let slotBytes = 0;
  for await (const element of iterator) {
    const { data } = element as Tensor<"uint8">;
    assertEquals(data.length, LENGTH);
    assert(data.every((byte) => byte === data[0]));
    values.push(data[0]!);
    onElement(values.length);
    // Only of the tasks that are there: a killed worker's are not.
    const { reads } = iterator.stats()[0]!.service!;
    slotBytes = Math.max(slotBytes, reads.reduce((sum, read) => sum + (read.slotBytes ?? 0), 0));
  }
  return { values: values.sort((a, b) => a - b), slotBytes };
}

const ALL = Array.from({ length: 40 }, (_, x) => x);

Deno.test("a trainer gets its batches from workers of its host through slots, also when one is killed", async () => {
  await using dispatcher = await startDispatcher(...SOON_GIVEN_UP);
  const workers = await startWorkers(dispatcher, 2);
  await using _workers = all(workers);
  const { values, slotBytes } = await soon(
    "the job",
    read(dispatcher.address, (count) => {
      if (count === 5) workers[0]!.child.kill("SIGKILL");
    }),
  );
  assertEquals(values, ALL);
  assert(slotBytes >= 10 * LENGTH);

  workers[1]!.child.kill("SIGKILL");
  await using _other = await startWorker(dispatcher.address, "--no-slots", "--name", "w3");
  const again = await soon("the job without slots", read(dispatcher.address));
  assertEquals([again.values, again.slotBytes], [ALL, 0]);
});
