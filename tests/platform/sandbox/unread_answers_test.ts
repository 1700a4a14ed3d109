/** A runner that asks its host for a lot, and does not read the answers, fills no memory. */
import { Dataset, LeatError } from "../../../mod.ts";
import { ByteGate } from "../../../platform/sandbox/byte_gate.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";
import { startedWithHost } from "./host_stand_in.ts";
import { settingsOf } from "./sandbox_lib.ts";

const settled = () => new Promise((resolve) => setTimeout(resolve));

const ANSWER_BYTES = 16 * 2 ** 20;

/** Sends requests under the runner's own name, the last to the worker, and reads nothing from then on. */
const ASK_ONLY = `(async () => {
  const { encodeMessage } = await import(args.codec);
  const [, , node, incarnation] = Deno.args;
  const source = { node, path: "/edge", incarnation: incarnation + "-1" };
  const target = { node: "worker", path: "/edge" };
  for (let i = 0; i <= 40; i++) {
    const id = 1e6 + i;
    const toHost = { method: args.method, args: { file: 1, offset: 0, bytesMax: 2 ** 40 } };
    const asked = i < 40 ? { method: "host", body: toHost } : { method: "total", body: 0 };
    const message = encodeMessage({
      kind: "ask", source, target, number: id, id, ...asked, timeoutMs: Infinity,
    });
    Deno.stdout.writeSync(new Uint8Array(new Uint32Array([message.length, 2 ** 32 - 1]).buffer));
    Deno.stdout.writeSync(message);
  }
  for (;;);
})()`;

/** How many of 40 requests reach the host of a runner that reads no answer. */
async function reached(method: string): Promise<number> {
  let count = 0;
  const process = {
    isAlive: true,
    ask: () => {
      count++;
      return Promise.resolve(new Uint8Array(ANSWER_BYTES));
    },
    terminate: () => Promise.resolve(),
  };
  const runner = await startedWithHost(process);
  const codec = import.meta.resolve("../../../transport/codec.ts");
  const hostile = Dataset.from([ASK_ONLY]).map(
    (code, { args }) => new Function("args", `return (${code})`)(args),
    { captures: { args: { codec, method } } },
  );
  const sent = Promise.withResolvers<void>();
  runner.serve({
    next: () => Promise.resolve(null),
    total: () => (sent.resolve(), Promise.resolve(0)),
  });
  await runner.ask("run", { ...settingsOf(hostile), shared: false });
  const step = assertRejects(() => runner.ask("next", {}), LeatError, "it was ended");
  await sent.promise;
  // Answers that do not wait for the runner follow each other without a pause.
  for (let turns = 0; turns < 100; turns++) await settled();
  await runner.terminate();
  await step;
  return count;
}

Deno.test("a runner that reads no answers gets few reads of far files, and few lists", async () => {
  const reads = await reached("read");
  assert(reads >= 1 && reads <= 8, `${reads} reads of 16 MiB`);
  const lists = await reached("list");
  assert(lists >= 1 && lists <= 2, `${lists} lists`);
});

Deno.test("ByteGate admits work in order, as far as its bytes allow", async () => {
  const gate = new ByteGate(10);
  const running: number[] = [];
  const ends: (() => void)[] = [];
  const works = [4, 6, 20, 1, 1].map((bytes, i) =>
    gate.run(bytes, () => {
      running.push(i);
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      ends.push(i === 0 ? () => reject(new Error("failed")) : resolve);
      return promise;
    }).catch(() => {})
  );
  await settled();
  assertEquals(running, [0, 1]);
  ends[0]!();
  await settled();
  assertEquals(running, [0, 1]);
  ends[1]!();
  await settled();
  assertEquals(running, [0, 1, 2]);
  ends[2]!();
  await settled();
  assertEquals(running, [0, 1, 2, 3, 4]);
  for (const end of ends) end();
  await Promise.all(works);
});
