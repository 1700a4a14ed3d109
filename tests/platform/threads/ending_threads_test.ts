/** Threads that were asked to end: real ones, which run until a flag is set. */

import { assertEquals } from "../../assert.ts";
import { EndingThreads } from "../../../platform/threads/ending_threads.ts";
import { until } from "../../lib/until.ts";

/** A thread that never yields until its flag is set. */
class StubbornThread {
  readonly #flag = new Int32Array(new SharedArrayBuffer(4));
  readonly #worker: Worker;
  readonly #channel = new MessageChannel();

  constructor() {
    const program = `onmessage = ({ data: { flag, port } }) => {
      globalThis.kept = port;
      postMessage("begun");
      while (Atomics.load(flag, 0) === 0);
    };`;
    this.#worker = new Worker(`data:text/javascript,${encodeURIComponent(program)}`, {
      type: "module",
    });
  }

  /** Leads to the thread. */
  get port(): MessagePort {
    return this.#channel.port1;
  }

  async begin(): Promise<void> {
    const begun = Promise.withResolvers<unknown>();
    this.#worker.onmessage = begun.resolve;
    const { port2: port } = this.#channel;
    this.#worker.postMessage({ flag: this.#flag, port }, [port]);
    await begun.promise;
  }

  terminate(): void {
    this.#worker.terminate();
    this.port.close();
  }

  giveWay(): void {
    Atomics.store(this.#flag, 0, 1);
  }
}

Deno.test("EndingThreads counts a thread until it has ended, as a runaway if that takes too long", async () => {
  const thread = new StubbornThread();
  await thread.begin();
  const told = Promise.withResolvers<string>();
  const ending = new EndingThreads({ onRunaway: told.resolve });
  await ending.watch(thread.port, "task 7", 1);
  thread.terminate();
  assertEquals(ending.count, 1);
  assertEquals(await told.promise, "task 7");
  assertEquals(ending.runaways, 1);
  thread.giveWay();
  await until(() => ending.count === 0);
  assertEquals(ending.runaways, 0);
  ending.close();
});

Deno.test("EndingThreads forgets all threads when it is closed", async () => {
  const thread = new StubbornThread();
  await thread.begin();
  const onRunaway = () => {
    throw new Error("told of a runaway");
  };
  const ending = new EndingThreads({ onRunaway });
  await ending.watch(thread.port, "task 7", 60_000);
  thread.terminate();
  ending.close();
  assertEquals([ending.count, ending.runaways], [0, 0]);
  await ending.watch(thread.port, "task 8", 60_000);
  assertEquals(ending.count, 0);
  thread.giveWay();
});
