/** Requests of a runner that wait for others, such as a trainer or a service. */
import { Dataset } from "../../../mod.ts";
import { assertEquals } from "../../assert.ts";
import { startedWithHost } from "./host_stand_in.ts";
import { settingsOf } from "./sandbox_lib.ts";

/** Sends requests under the runner's own name. */
const ASK = `(async () => {
  const { encodeMessage } = await import(args.codec);
  const [, , node, incarnation] = Deno.args;
  const source = { node, path: "/edge", incarnation: incarnation + "-1" };
  const target = { node: "worker", path: "/edge" };
  for (const [i, asked] of args.requests.entries()) {
    const id = 1e6 + i;
    const message = encodeMessage({
      kind: "ask", source, target, number: id, id, ...asked, timeoutMs: Infinity,
    });
    Deno.stdout.writeSync(new Uint8Array(new Uint32Array([message.length, 2 ** 32 - 1]).buffer));
    Deno.stdout.writeSync(message);
  }
})()`;

interface Request {
  readonly method: string;
  readonly body: unknown;
}

const DECODE: Request = { method: "host", body: { method: "decode", args: {} } };
const SERVICE_NEXT: Request = { method: "host", body: { method: "serviceNext", args: 1 } };
const READ: Request = { method: "read", body: { split: 0, from: 0 } };
/** It arrives after all others. */
const LAST: Request = { method: "split", body: { source: 0, repetition: 0 } };

/** The requests of a runner that reach its host or its reader, which answer none. */
async function reached(...requests: readonly Request[]): Promise<string[]> {
  const methods: string[] = [];
  const wait = (method: string) => {
    methods.push(method);
    return new Promise<never>(() => {});
  };
  const runner = await startedWithHost({
    isAlive: true,
    ask: (_, request) => wait((request as Request).method),
    terminate: () => Promise.resolve(),
  });
  const codec = import.meta.resolve("../../../transport/codec.ts");
  const asking = Dataset.from([ASK]).map(
    (code, { args }) => new Function("args", `return (${code})`)(args),
    { captures: { args: { codec, requests: [...requests, LAST] } } },
  );
  const last = Promise.withResolvers<void>();
  runner.serve({
    next: () => (last.resolve(), new Promise(() => {})),
    total: () => Promise.resolve(0),
    read: () => wait("read"),
  });
  await runner.ask("run", { ...settingsOf(asking), shared: false });
  runner.ask("next", {}).catch(() => {});
  await last.promise;
  // What is admitted reaches its receiver without a pause.
  await new Promise((resolve) => setTimeout(resolve));
  await runner.terminate();
  return methods;
}

/** A runner may have 128 requests open. */
const AT_ONCE = Math.min(100, navigator.hardwareConcurrency + 1);

Deno.test("ConfinedProcess lets no image wait for a trainer or a service", async () => {
  for (const waiting of [SERVICE_NEXT, READ]) {
    const methods = await reached(...Array<Request>(AT_ONCE).fill(waiting), DECODE);
    assertEquals([methods.length, methods.at(-1)], [AT_ONCE + 1, "decode"]);
  }
});

Deno.test("ConfinedProcess decodes one image more at once than there are cores", async () => {
  const methods = await reached(...Array<Request>(120).fill(DECODE));
  assertEquals(methods.length, Math.min(120, navigator.hardwareConcurrency + 1));
});
