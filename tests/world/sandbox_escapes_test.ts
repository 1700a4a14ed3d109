/**
 * Functions that try to leave their thread, or to take it and the process along: what they reach for
 * is not there, and the others go on.
 *
 * @module
 */
import type { LeatErrorCode } from "../../core/error.ts";
import { Dataset, LeatError, udf } from "../../mod.ts";
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
} from "../assert.ts";
import { NO_SPLITS, Sandbox, settingsOf } from "./sandbox_lib.ts";

Deno.test("what reaches other threads or the whole process is shut off, and cannot be brought back", async () => {
  await using sandbox = await Sandbox.open();
  const calls = [
    "postMessage(1)",
    "self.postMessage(1)",
    "close()",
    "new Worker('data:text/javascript,')",
    "new BroadcastChannel('b')",
    "new MessageChannel()",
    "Deno.exit(3)",
    "Deno.kill(1)",
    "Deno.chdir('/')",
    "Deno.addSignalListener('SIGINT', () => {})",
    "Deno.serve(() => new Response())",
    "Deno.listen({ port: 0 })",
  ];
  const absent = [
    ...["process", "require", "global", "caches", "navigator", "onmessage", "MessagePort"],
    ...["SharedWorker", "importScripts", "localStorage", "alert", "prompt", "location"],
    ...["Deno.permissions", "Deno.stdin", "Deno.pid", "Deno.symlink", "Deno.internal"],
    ...["Deno[Symbol.for('Deno.internal')]", "URL.createObjectURL", "console._stdout"],
  ];
  const bringingBack = [
    `(() => { "use strict"; try { globalThis.Deno = {} } catch (error) { return error.name } })()`,
    `(() => { "use strict"; try { Deno.exit = 1 } catch (error) { return error.name } })()`,
    "delete globalThis.Worker",
    "Object.isFrozen(Deno)",
  ];
  const came = await sandbox.evaluateAll([
    ...calls,
    ...absent.map((name) => `typeof globalThis.${name}`),
    ...bringingBack,
  ]);
  for (const [i, call] of calls.entries()) {
    const one = came[i]!;
    assertEquals("code" in one && one.code, "permission_denied", call);
    assertStringIncludes("message" in one ? one.message : "", "is shut off", call);
  }
  assertEquals(
    came.slice(calls.length),
    [...absent.map(() => "undefined"), "TypeError", "TypeError", false, true]
      .map((value) => ({ value })),
  );
});

Deno.test("a function that changes every built-in gets hold of no port", async () => {
  await using sandbox = await Sandbox.open();
  // Each element after the first is answered through whatever the first has changed.
  const spying = Dataset.range(4).map((x) => {
    const spied = globalThis as unknown as Record<string, unknown>;
    const seen = (spied.seen ??= new Set()) as Set<string>;
    const note = (value: unknown) => {
      if (typeof value === "object" && value !== null) {
        seen.add(Object.prototype.toString.call(value));
      }
    };
    if (x === 0) {
      const kinds = ["EventTarget", "Event", "MessageEvent", "Promise", "Map", "Array", "Set"];
      for (const kind of kinds) {
        const { prototype } = spied[kind] as { prototype: Record<string, unknown> };
        for (const name of ["then", "get", "set", "has", "push", "dispatchEvent", "data"]) {
          const original = Object.getOwnPropertyDescriptor(prototype, name);
          if (typeof original?.value !== "function" || !original.writable) continue;
          const { value } = original;
          prototype[name] = function (this: unknown, ...args: unknown[]) {
            note(this);
            args.forEach(note);
            return value.apply(this, args);
          };
        }
      }
      Object.defineProperty(Object.prototype, "then", {
        get(this: unknown) {
          note(this);
          return undefined;
        },
        configurable: true,
      });
    }
    return [...seen].join();
  });
  const came = await sandbox.elements(spying);
  assertEquals(came.length, 4);
  for (const element of came) {
    assertEquals("value" in element, true, Deno.inspect(element));
    assertEquals(/Port|MessageEvent|Worker/.test(JSON.stringify(element)), false);
  }
});

Deno.test("what ends a thread costs its task, which says why, and nothing else", async () => {
  await using sandbox = await Sandbox.open({}, () => ({
    heapBytesMax: 64 * 2 ** 20,
    stallTimeoutMs: 120_000,
  }));
  const ends: [expression: string, code: LeatErrorCode, message: RegExp][] = [
    [
      "Promise.reject(new Error('boom')).finally(() => {}), new Promise(() => {})",
      "unavailable",
      /boom/,
    ],
    ["setTimeout(() => { throw new Error('late') }), new Promise(() => {})", "unavailable", /late/],
    ["(() => { const a = []; for (;;) a.push({}) })()", "resource_exhausted", /64 MiB/],
    ["new Uint8Array(2 ** 45)", "resource_exhausted", /--function-heap-mib/],
  ];
  const came = await Promise.all(ends.map(([expression]) => sandbox.evaluate(expression)));
  for (const [i, [expression, code, message]] of ends.entries()) {
    const element = came[i]!;
    assertEquals(
      "code" in element && element.code,
      code,
      `${expression}: ${Deno.inspect(element)}`,
    );
    assertMatch("message" in element ? element.message : "", message);
  }
  const [deep, next] = await sandbox.evaluateAll([
    "(function deep() { return deep() })()",
    "1 + 1",
  ]);
  assertEquals(codeOf(deep!), "unknown");
  assertEquals(next, { value: 2 });
});

Deno.test("an endless loop is ended, and the worker's thread answers meanwhile", async () => {
  await using patient = await Sandbox.open();
  await using sandbox = await Sandbox.open({}, () => ({ stallTimeoutMs: 1_000 }));
  const looping = sandbox.evaluate("(() => { for (;;); })()");
  const waiting = sandbox.evaluate("Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)");
  assertEquals(await patient.evaluate("2"), { value: 2 });
  for (const came of [await looping, await waiting]) {
    assertEquals(codeOf(came), "deadline_exceeded");
    assertStringIncludes("message" in came ? came.message : "", "--function-timeout-ms");
  }
  await sandbox.threadsEnded();
});

Deno.test("a loop does not outlive its thread where it begins after a wait, or is nobody's any more", async () => {
  const module = `
    export const later = (x) => new Promise((resolve) => setTimeout(() => resolve(x), 1));
    export const endless = (x) => { if (x === "two") for (;;); return x; };`;
  await using sandbox = await Sandbox.open(
    { "data/lines.txt": "one\ntwo\n", "data/module.js": module },
    () => ({ stallTimeoutMs: 1_000 }),
  );
  const { folder } = sandbox;
  const named = (name: string) =>
    udf<(x: string) => Promise<string>>(`file://${folder}/data/module.js`, name);
  const read = Dataset.textLines(`${folder}/data/lines.txt`).map(named("later"))
    .map(named("endless"));
  const spinning = async (x: number) => {
    await null;
    if (x === 1) { for (;;); }
    return x;
  };
  const called = Dataset.range(10).map(spinning, { numParallelCalls: 2 });
  const left = sandbox.runners.start(settingsOf(Dataset.range(2).map(spinning)), NO_SPLITS);
  for (const came of await Promise.all([read, called].map((each) => sandbox.elements(each)))) {
    assertEquals(codeOf(came.at(-1)!), "deadline_exceeded", Deno.inspect(came));
  }
  await left.next();
  const never = left.next();
  await new Promise((resolve) => setTimeout(resolve, 100)); // it spins by now
  left.dispose();
  // On a machine that stands still its time may be over first.
  const { code } = await assertRejects(() => never, LeatError);
  assert(code === "unavailable" || code === "deadline_exceeded", code);
  await sandbox.threadsEnded();
  assertEquals(sandbox.runners.runaways, 0);
});

function codeOf(came: object): unknown {
  return "code" in came ? came.code : undefined;
}
