/**
 * Functions that try to end, block or fill everything they reach: only their own task fails, and
 * the tasks next to it continue.
 */
import type { LeatErrorCode } from "../../../core/error.ts";
import { Dataset, LeatError, udf } from "../../../mod.ts";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../../assert.ts";
import { type Came, NO_SPLITS, Sandbox, settingsOf } from "./sandbox_lib.ts";

const HEAP_BYTES_MAX = 64 * 2 ** 20;
const MEMORY_BYTES_MAX = 2 ** 30;

Deno.test("a function that ends its process fails only its own task, whose error says why", async () => {
  await using sandbox = await Sandbox.open({}, () => ({
    heapBytesMax: HEAP_BYTES_MAX,
    memoryBytesMax: MEMORY_BYTES_MAX,
  }));
  const ends: [expression: string, code: LeatErrorCode, message: RegExp][] = [
    ["Promise.reject(new Error('boom')), new Promise(() => {})", "unavailable", /boom/],
    ["setTimeout(() => { throw new Error('late') }), new Promise(() => {})", "unavailable", /late/],
    ["Deno.exit(3)", "unavailable", /exit code 3/],
    ["process.exit(4)", "unavailable", /exit code 4/],
    ["Deno.stdin.close(), Deno.stdout.close(), 1", "unavailable", /BadResource/],
    ["process.abort()", "unavailable", /SIGABRT/],
    ["process.kill(process.pid, 'SIGKILL')", "unavailable", /SIGKILL/],
    [
      "new Worker('data:text/javascript,', { type: 'module' }), new Promise(() => {})",
      "resource_exhausted",
      /a function started a thread.*1024 MiB/,
    ],
    ["process.kill(process.ppid, 'SIGKILL')", "permission_denied", /run access/],
    ["Deno.kill(Deno.ppid, 'SIGKILL')", "permission_denied", /run access/],
    ["(() => { const a = []; for (;;) a.push({}) })()", "resource_exhausted", /64 MiB/],
    [
      "(() => { const a = []; for (;;) a.push(new Array(1000).fill(1)) })()",
      "resource_exhausted",
      /--function-heap-mib/,
    ],
  ];
  const bystander = sandbox.elements(Dataset.range(1_000).map((x) => x + 1));
  const came = await Promise.all(ends.map(([expression]) => sandbox.evaluate(expression)));
  for (const [i, [expression, code, message]] of ends.entries()) {
    const element = came[i]!;
    assertEquals(codeOf(element), code, `${expression}: ${Deno.inspect(element)}`);
    const text = "message" in element ? element.message : "";
    assertMatch(text, message);
    assertEquals(text.includes("file://"), false, `a path of the worker: ${text}`);
  }
  assertEquals(await bystander, Array.from({ length: 1_000 }, (_, i) => ({ value: i + 1 })));
  await sandbox.processesEnded();
});

Deno.test("memory that a function asks for beyond the limit is refused, and costs an element", async () => {
  await using sandbox = await Sandbox.open({}, () => ({ memoryBytesMax: MEMORY_BYTES_MAX }));
  const asks: [expression: string, code: LeatErrorCode][] = [
    ["new Uint8Array(2 ** 45)", "resource_exhausted"],
    ["new Uint8Array(2 ** 31).fill(1)", "resource_exhausted"],
    ["new Uint8Array(new SharedArrayBuffer(2 ** 31)).fill(1)", "resource_exhausted"],
    ["new WebAssembly.Memory({ initial: 40_000 })", "resource_exhausted"],
    ["(function deep() { return deep() })()", "invalid_argument"],
  ];
  const came = await sandbox.evaluateAll([...asks.map(([expression]) => expression), "1 + 1"]);
  for (const [i, [expression, code]] of asks.entries()) {
    assertEquals(codeOf(came[i]!), code, expression);
  }
  assertEquals(came.at(-1), { value: 2 });
});

Deno.test("a function that never gives way is ended, whatever it does, and others are answered meanwhile", async () => {
  await using patient = await Sandbox.open();
  await using sandbox = await Sandbox.open({}, () => ({ stallTimeoutMs: 1_000 }));
  const endless = [
    "(() => { for (;;); })()",
    "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)",
    // Single calls of the engine, or calls that no check of the engine interrupts.
    "(() => { const t = `[${'1,'.repeat(5_000_000)}1]`; for (;;) JSON.parse(t); })()",
    "'a'.repeat(2 ** 28).replaceAll('a', 'bb'.repeat(8)).replaceAll('b', 'cc')",
    "import('node:crypto').then((c) => { for (;;) c.generatePrimeSync(4_096); })",
    "import('node:crypto').then((c) => c.pbkdf2Sync('a', 'b', 2 ** 31 - 1, 64, 'sha512'))",
    "new Promise((r) => setTimeout(r, 1)).then(() => { for (;;); })",
  ];
  const looping = Promise.all(endless.map((expression) => sandbox.evaluate(expression)));
  assertEquals(await patient.evaluate("2"), { value: 2 });
  for (const [i, came] of (await looping).entries()) {
    const code = codeOf(came);
    // A string may be too long for the engine, which reports it at once.
    const isEnded = code === "deadline_exceeded" || code === "resource_exhausted" ||
      code === "unknown" || code === "unavailable";
    assert(isEnded, `${endless[i]}: ${Deno.inspect(came)}`);
    if (code === "deadline_exceeded") {
      assertStringIncludes("message" in came ? came.message : "", "--function-timeout-ms");
    }
  }
  await sandbox.processesEnded();
});

Deno.test("nothing of a task runs on after the task, its threads and timers included", async () => {
  await using sandbox = await Sandbox.open();
  const spinning = sandbox.runners.start(
    settingsOf(
      Dataset.range(2).map((x) => {
        const { Worker } = globalThis as unknown as {
          Worker: new (url: string, o: object) => void;
        };
        for (let i = 0; i < 4; i++) {
          new Worker("data:text/javascript,for (;;);", { type: "module" });
        }
        return x;
      }),
    ),
    NO_SPLITS,
  );
  assertEquals((await spinning.next()).kind, "element");
  spinning.dispose();
  await sandbox.processesEnded();
});

Deno.test("disposing a runner ends its spinning function", async () => {
  const module = `export const endless = (x) => { if (x === "two") for (;;); return x; };`;
  await using sandbox = await Sandbox.open({
    "data/lines.txt": "one\ntwo\n",
    "data/module.js": module,
  });
  const { folder } = sandbox;
  const endless = udf<(x: string) => string>(`file://${folder}/data/module.js`, "endless");
  const dataset = Dataset.textLines(`${folder}/data/lines.txt`).map(endless);
  const runner = sandbox.runners.start(settingsOf(dataset), NO_SPLITS);
  assertEquals((await runner.next()).kind, "element");
  const never = runner.next().then(() => undefined, LeatError.from);
  await new Promise((resolve) => setTimeout(resolve, 100)); // it most likely spins by now
  runner.dispose();
  assertEquals((await never)?.code ?? "unavailable", "unavailable");
  await sandbox.processesEnded();
});

Deno.test("a function that changes every built-in harms only the elements of its own task", async () => {
  await using sandbox = await Sandbox.open();
  const vandal = `(() => {
    Object.defineProperty(Object.prototype, "then", { get() { throw new Error("vandal"); } });
    for (const kind of [Array, Map, Promise, Uint8Array, String, Function]) {
      for (const name of Object.getOwnPropertyNames(kind.prototype)) {
        try { kind.prototype[name] = () => { throw new Error("vandal"); }; } catch {}
      }
    }
  })()`;
  const short = await Sandbox.open({}, () => ({ stallTimeoutMs: 1_000 }));
  await using _short = short;
  const came = await short.evaluate(vandal);
  assert(came !== undefined);
  assertEquals(await sandbox.evaluate("[1, 2].map((x) => x * 2)"), { value: [2, 4] });
});

function codeOf(came: Came): LeatErrorCode | undefined {
  return "code" in came ? came.code : undefined;
}
