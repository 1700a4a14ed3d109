/** The turns of pipelines at the processes that call Python functions, with a test as the processes. */
import type { PythonBatch } from "../../../platform/python/python_pool.ts";
import { PythonProcesses } from "../../../platform/python/python_processes.ts";
import { assertEquals } from "../../assert.ts";

const CORES = navigator.hardwareConcurrency;

/** Processes whose calls end when the test says so. */
class Bench {
  /** The names of the called functions, in the order in which the calls began. */
  readonly begun: string[] = [];
  readonly #ends: (() => void)[] = [];
  readonly processes = new PythonProcesses("python3", {}, () =>
    Promise.resolve({
      isAlive: true,
      kill: () => {},
      call: ({ name }: PythonBatch) => {
        this.begun.push(name);
        const { promise, resolve } = Promise.withResolvers<Uint8Array>();
        this.#ends.push(() => resolve(new Uint8Array()));
        return promise;
      },
    }));

  /** Opens a pipeline, and returns what calls a function in it. */
  open(owner: string): (name: string) => void {
    const pool = this.processes.open(owner);
    return (name) => {
      pool.run({ file: "a.py", name, calls: new Uint8Array() });
    };
  }

  /** Ends the oldest call. */
  async endOne(): Promise<void> {
    this.#ends.shift()?.();
    await settled();
  }
}

/** Settles after what is settled now has had its effect. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 0));
}

Deno.test("PythonProcesses serves an identity soon, however many pipelines of another one wait", async () => {
  const bench = new Bench();
  for (let i = 0; i < 50; i++) bench.open("a")("flood");
  await settled();
  assertEquals(bench.begun.length, CORES);
  const call = bench.open("b");
  for (let i = 0; i < 3; i++) call("b");
  // It gets every second turn at least, until it has as many processes.
  for (let i = 0; i < 6; i++) await bench.endOne();
  assertEquals(bench.begun.filter((name) => name === "b").length, 3);
});

Deno.test("PythonProcesses lets the pipelines of an identity take turns", async () => {
  const bench = new Bench();
  const [first, second] = [bench.open("a"), bench.open("a")];
  for (let i = 0; i < CORES + 3; i++) first("first");
  for (let i = 0; i < 2; i++) second("second");
  await settled();
  for (let i = 0; i < 4; i++) await bench.endOne();
  assertEquals(bench.begun.slice(CORES), ["first", "second", "first", "second"]);
});
