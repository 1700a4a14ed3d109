/**
 * Functions that impersonate their runner towards the worker, or take what the worker needs. None
 * may end, block or fill the worker, nor cost another job an element.
 */
import { RUNNERS_DIED } from "../../actors/dispatcher/jobs/runner_deaths.ts";
import { Dataset, LeatError, LocalCluster } from "../../mod.ts";
import { assert, assertEquals, assertRejects } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { PATIENCE_MS, until } from "../lib/until.ts";
import { soon, startDispatcher } from "../cluster/lib.ts";

const CODEC = import.meta.resolve("../../transport/codec.ts");
const TENSOR = import.meta.resolve("../../core/tensor.ts");

/** Code that writes a request under the runner's own name. */
const ASK = `const { encodeMessage } = await import(args.codec);
const messageOf = (id, body, node = Deno.args[2]) => {
  const incarnation = Deno.args[3];
  const source = { node, path: "/edge", incarnation: incarnation + "-1" };
  const target = { node: "worker", path: "/edge" };
  const kind = "ask", method = "total", timeoutMs = 1e6;
  return encodeMessage({ kind, source, target, number: id, id, method, body, timeoutMs });
};
const ask = (...args) => {
  const message = messageOf(...args);
  const frame = new Uint8Array(8 + message.length);
  frame.set(new Uint8Array(new Uint32Array([message.length, 2 ** 32 - 1]).buffer));
  frame.set(message, 8);
  return frame;
};`;

/**
 * Asks with a tensor of 50 million empty blocks. Its envelope is small, and the zeros that are the
 * offsets of the blocks are holes in the slot file.
 */
const MANY_BLOCKS = `(async () => {
  ${ASK}
  const { Tensor } = await import(args.tensor);
  const { writeSync } = Deno.FsFile.prototype;
  const offsets = 5e7;
  const few = messageOf(1, new Tensor("bytes", [15], Array(15).fill(new Uint8Array(0))));
  const view = new DataView(few.buffer, few.byteOffset);
  const fields = [0x54, 0, 0, 0, 0, 13, 1, 0, 0, 0, 15];
  const shape = few.findIndex((_, i) => fields.every((byte, j) => few[i + j] === byte)) + 7;
  view.setUint32(shape, offsets - 1);
  const start = few.length - 128;
  view.setUint32(start - 4, 4 * offsets);
  const length = start + 4 * offsets + 64;
  Deno.FsFile.prototype.writeSync = function (bytes) {
    this.seekSync(0, 0);
    writeSync.call(this, few.subarray(0, start));
    this.seekSync(length - 64, 0);
    writeSync.call(this, few.subarray(start + 64));
    Deno.stdout.writeSync(new Uint8Array(new Uint32Array([length, 0]).buffer));
    return bytes.length;
  };
  return new Uint8Array(2 ** 20);
})()`;

/** The code that a hostile function runs in its process; `to` is the pipe to the worker. */
const ATTACKS: Readonly<Record<string, string>> = {
  "writes noise into the channel":
    "(() => { for (let i = 0; i < 100; i++) Deno.stdout.writeSync(crypto.getRandomValues(new Uint8Array(4096))) })()",
  "announces a message of 4 GiB in the pipe":
    "Deno.stdout.writeSync(new Uint8Array(new Uint32Array([2 ** 32 - 2, 2 ** 32 - 1]).buffer))",
  "announces a message of 1 GiB in a slot that is empty":
    "Deno.stdout.writeSync(new Uint8Array(new Uint32Array([2 ** 30, 1]).buffer))",
  "frees slots that it was not given":
    "(() => { for (let i = 0; i < 9; i++) Deno.stdout.writeSync(new Uint8Array(new Uint32Array([0, 2 ** 31]).buffer)) })()",
  "asks with a small envelope for which millions of values would be made": MANY_BLOCKS,
  "begins a message and never ends it":
    "(Deno.stdout.writeSync(new Uint8Array(new Uint32Array([4096, 2 ** 32 - 1]).buffer)), " +
    "new Promise(() => {}))",
  "asks without end":
    `(async () => { ${ASK} const one = ask(1, 0); for (let i = 0; i < 1e6; i++) ` +
    "Deno.stdout.writeSync(one) })()",
  "asks in the name of another node":
    `(async () => { ${ASK} Deno.stdout.writeSync(ask(1, 0, "other")); await new Promise(() => {}) })()`,
  "fills the disk through the slot file":
    "(() => { const { writeSync } = Deno.FsFile.prototype; Deno.FsFile.prototype.writeSync = function (b) " +
    "{ this.seekSync(19e8, 0); for (let i = 0; i < 2000; i++) writeSync.call(this, new Uint8Array(2 ** 21)); " +
    "return b.length }; " +
    "return new Uint8Array(2 ** 20) })()",
  "asks and never reads the answers": `(async () => { ${ASK} for (let id = 1; id < 1e6; id++) ` +
    "Deno.stdout.writeSync(ask(id, 'x'.repeat(1000))) })()",
  "closes the channel": "Deno.stdout.close()",
  "closes what the worker says": "Deno.stdin.close()",
  "changes the built-ins that encode what it gives":
    "Object.assign(Object.prototype, { kind: 'element', toJSON: () => 'x' }), " +
    "Array.prototype.push = function () { return 1e9 }, Map.prototype.get = () => 7",
  "gives a string of 300 MB": "'x'.repeat(3e8)",
  "gives shared arrays 30 wide and 7 deep":
    "(() => { let a = [1]; for (let d = 0; d < 7; d++) a = Array(30).fill(a); return a })()",
  "gives an array of 30 million": "Array(3e7).fill(0)",
  "throws an error that is large in all of its parts":
    "(() => { let e = new Error('x'.repeat(1e7)); for (let i = 0; i < 1e4; i++) " +
    "e = new Error('y'.repeat(1e4), { cause: e }); throw e })()",
};

/**
 * Attacks that block their own process: the stall limit ends them. They run concurrently with the
 * others, on a worker of their own: with so short a limit, a busy machine ends any process.
 */
const STALLING: ReadonlySet<string> = new Set([
  "changes the built-ins that encode what it gives",
  "gives shared arrays 30 wide and 7 deep",
]);

Deno.test("a function that takes over its runner's process harms neither the worker nor another job", async () => {
  const start = (stallTimeoutMs: number) =>
    LocalCluster.start({
      workers: 1,
      carrier: "thread",
      logLevel: "off",
      runnerDeathsMax: 1,
      confine: { stallTimeoutMs, heapBytesMax: 256 * 2 ** 20 },
    });
  // No attack there needs the limit, and it would end the bystander on a busy machine.
  await using service = await start(PATIENCE_MS);
  await using hasty = await start(2_000);
  const bystander = Dataset.range(Number.MAX_SAFE_INTEGER).map((x) => x + 1)
    .distribute({ service, processingMode: "OFF" }).iterator();
  let expected = 0;
  const readBeside = async (elements: number, name: string) => {
    for (let i = 0; i < elements; i++) {
      assertEquals((await bystander.next()).value, ++expected, name);
    }
  };
  const begin = (name: string, service: LocalCluster) => {
    const attacking = Dataset.from([ATTACKS[name]!]).map(
      (code, { args }) => new Function("args", `return (${code})`)(args),
      { captures: { args: { codec: CODEC, tensor: TENSOR } } },
    );
    const hostile = attacking.distribute({ service, processingMode: "DYNAMIC" }).iterator();
    // Whatever its result, it ends, or is abandoned.
    return { hostile, over: hostile.next().then(() => {}, () => {}) };
  };
  const stalling = [...STALLING].map((name) => begin(name, hasty));
  for (const name of Object.keys(ATTACKS).filter((name) => !STALLING.has(name))) {
    const { hostile, over } = begin(name, service);
    await readBeside(50, name);
    if (!name.includes("never ends")) await over;
    await hostile.return();
    await readBeside(1, name);
  }
  for (const { hostile, over } of stalling) {
    await over;
    await hostile.return();
  }
  const next = Dataset.range(3).map((x) => x + 1).distribute({ service: hasty });
  assertEquals(await until(() => Array.fromAsync(next).catch(() => undefined)), [1, 2, 3]);
  await bystander.return();
});

Deno.test("a function whose last words cannot be sent as they are ends its runners no more often than others", async () => {
  await using cluster = await LocalCluster.start({
    ...{ workers: 1, carrier: "websocket", logLevel: "off", runnerDeathsMax: 3, confine: {} },
  });
  // The end of these words begins with half a character.
  const dying = Dataset.range(3).map((x) => {
    console.error("😀".repeat(3_000));
    const { Deno } = globalThis as unknown as { Deno: { exit(code: number): void } };
    Deno.exit(3);
    return x;
  });
  const iterator = dying.distribute({ service: cluster, processingMode: "DYNAMIC" }).iterator();
  for (let deaths = 1;; deaths++) {
    const error = await soon("an end", assertRejects(() => iterator.next(), LeatError));
    if (error.details?.reason === RUNNERS_DIED) break;
    assert(deaths < 4, error.message);
  }
  await iterator.return();
});

/** Whether a process exists. */
async function isThere(pid: number): Promise<boolean> {
  const { success } = await new Deno.Command("sh", {
    args: ["-c", `kill -0 ${pid}`],
    stderr: "null",
  }).output();
  return success;
}

Deno.test({
  name: "no function survives a killed worker, whatever it is doing",
  // On other systems a process ends when it next reads from its worker.
  ignore: Deno.build.os !== "linux",
  async fn() {
    await using dispatcher = await startDispatcher();
    const { address } = dispatcher;
    await using worker = startChild("cli/worker.ts", { args: ["--dispatcher", address] });
    await worker.line(/listening on/);
    const pids = Dataset.range(2).map((x) => {
      const { process } = globalThis as unknown as { process: { pid: number } };
      if (x === 0) return process.pid;
      for (;;);
    });
    await using iterator = pids.distribute({ service: address }).iterator();
    const { value: pid } = await soon("the process's number", iterator.next());
    const spinning = iterator.next().catch(() => {});
    assert(await isThere(pid as number));
    worker.kill("SIGKILL");
    await soon("the end of the process", until(async () => !(await isThere(pid as number)), 50));
    await iterator.return();
    await spinning;
  },
});

Deno.test("a worker without file handles refuses tasks, and continues when there are some again", async () => {
  await using dispatcher = await startDispatcher();
  const { address } = dispatcher;
  await using worker = startChild("cli/worker.ts", {
    args: ["--dispatcher", address, "--heartbeat-ms", "200"],
    openFilesMax: 64,
  });
  await worker.line(/listening on/);
  const job = { service: address, processingMode: "OFF" } as const;
  const endless = Dataset.range(Number.MAX_SAFE_INTEGER).map((x) => x);
  const iterators = Array.from({ length: 16 }, () => endless.distribute(job).iterator());
  const came = await soon(
    "all tasks",
    Promise.all(iterators.map((iterator) => iterator.next().then(() => "came", LeatError.from))),
  );
  const refused = came.filter((one) => one instanceof LeatError) as LeatError[];
  for (const iterator of iterators) await iterator.return();
  for (const { code } of refused) {
    assert(["unavailable", "aborted", "resource_exhausted", "unknown"].includes(code), code);
  }
  const again = Dataset.range(3).map((x) => x * 2).distribute(job);
  const values: number[] = [];
  await soon(
    "a job afterwards",
    (async () => {
      for await (const x of again) values.push(x);
    })(),
  );
  assertEquals(values, [0, 2, 4]);
});
