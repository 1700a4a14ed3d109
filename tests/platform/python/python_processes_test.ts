/** The turns of pipelines at the processes that call Python functions, with a test as the processes. */
import type { PythonBatch } from "../../../platform/python/python_pool.ts";
import { PythonProcesses } from "../../../platform/python/python_processes.ts";
import { assertEquals } from "../../assert.ts";

const CORES = navigator.hardwareConcurrency;

type Call = (name: string, file?: string) => void;

/** Processes whose calls end when the test says so. */
class Bench {
  /** The names of the called functions, in the order in which the calls began. */
  readonly begun: string[] = [];
  /** The files of the calls of each process that was started. */
  readonly files: Set<string>[] = [];
  alive = 0;
  readonly #ends: (() => void)[] = [];
  readonly processes = new PythonProcesses("python3", {}, () => {
    const files = new Set<string>();
    this.files.push(files);
    this.alive++;
    return Promise.resolve({
      isAlive: true,
      kill: () => this.alive--,
      call: ({ file, name }: PythonBatch) => {
        this.begun.push(name);
        files.add(file);
        const { promise, resolve } = Promise.withResolvers<Uint8Array>();
        this.#ends.push(() => resolve(new Uint8Array()));
        return promise;
      },
    });
  });

  /** Opens a pipeline, and returns what calls a function in it, and closes it. */
  open(owner: string): Call & { close(): void } {
    const pool = this.processes.open(owner);
    const call: Call = (name, file = "a.py") => {
      pool.run({ file, name, calls: new Uint8Array() });
    };
    return Object.assign(call, { close: () => pool.close() });
  }

  /** Ends the oldest call. */
  async endOne(): Promise<void> {
    this.#ends.shift()?.();
    await settled();
  }

  /** Makes a call for each core to a file, and ends them. */
  async round(call: Call, file: string): Promise<void> {
    for (let i = 0; i < CORES; i++) call("f", file);
    await settled();
    for (let i = 0; i < CORES; i++) await this.endOne();
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

Deno.test("PythonProcesses lets a process call functions of one folder only, and keeps those of two folders", async () => {
  const bench = new Bench();
  const call = bench.open("a");
  for (const file of ["/a/x.py", "/b/x.py", "/a/y.py", "/b/x.py"]) await bench.round(call, file);
  const files = bench.files.map((files) => [...files].join());
  assertEquals(files.toSorted(), [
    ...Array(CORES).fill("/a/x.py,/a/y.py"),
    ...Array(CORES).fill("/b/x.py"),
  ]);
});

Deno.test("PythonProcesses runs at most two processes per core, however many folders there are", async () => {
  const bench = new Bench();
  const call = bench.open("a");
  for (let i = 0; i < 5; i++) {
    await bench.round(call, `/${i}/x.py`);
    assertEquals(bench.alive, Math.min(i + 1, 2) * CORES);
  }
});

Deno.test("PythonProcesses ends the idle process that was used least recently", async () => {
  const bench = new Bench();
  const call = bench.open("a");
  call("f", "/once/x.py");
  await settled();
  await bench.endOne();
  for (const folder of ["/a", "/b", "/a", "/b"]) await bench.round(call, `${folder}/x.py`);
  assertEquals(bench.files.length, 1 + 2 * CORES);
});

Deno.test("PythonProcesses keeps an idle process of a folder with a waiting call", async () => {
  const bench = new Bench();
  const [first, second, third] = [bench.open("a"), bench.open("a"), bench.open("a")];
  await bench.round(first, "/first/x.py");
  for (let i = 0; i < CORES; i++) second("second", "/second/x.py");
  await settled();
  third("third", "/third/x.py");
  for (let i = 0; i < CORES; i++) first("first", "/first/x.py");
  for (let i = 0; i < 2 * CORES + 1; i++) await bench.endOne();
  assertEquals(bench.files.length, 2 * CORES + 1);
});

Deno.test("PythonProcesses ends the processes of a folder when the last pipeline that called it closes", async () => {
  const bench = new Bench();
  const [first, second, third] = [bench.open("a"), bench.open("b"), bench.open("b")];
  await bench.round(first, "/first/x.py");
  await bench.round(second, "/shared/x.py");
  await bench.round(third, "/shared/y.py");
  second.close();
  assertEquals(bench.alive, 2 * CORES);
  third.close();
  assertEquals(bench.alive, CORES);
  first.close();
  assertEquals(bench.alive, 0);
});
