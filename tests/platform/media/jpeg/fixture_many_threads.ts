/** Starts eight threads that decode, and prints how many there are. */
import {
  type DecodingTask,
  DecodingThreads,
} from "../../../../platform/media/jpeg/decoding_threads.ts";

const threads = new DecodingThreads(8);
threads.worked(1_000);
// A thread cannot decode these: it answers with an error.
const task = { plan: {}, region: {} } as unknown as DecodingTask;
while (threads.ready < 8) {
  for (let i = 0; i < 40; i++) threads.decode(task)?.catch(() => {});
  await new Promise((resolve) => setTimeout(resolve, 5));
}
console.log(threads.ready);
Deno.exit();
