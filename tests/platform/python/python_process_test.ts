/** Processes that call Python functions, with a test as the process. */
import type { Link } from "../../../actors/runtime/link.ts";
import { LeatError } from "../../../core/error.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import type { ChildEnd } from "../../../platform/process/child_process.ts";
import { PythonCalls } from "../../../platform/python/python_calls.ts";
import type { PythonBatch } from "../../../platform/python/python_pool.ts";
import { type PythonChild, PythonProcess } from "../../../platform/python/python_process.ts";
import { Edge, type EdgeMethods } from "../../../platform/sandbox/edge.ts";
import { inlinePair } from "../../../transport/inline.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../../assert.ts";

const NEAR = { node: "worker", incarnation: "aa" };
const FAR = { node: "python", incarnation: "bb" };
const BATCH = { file: "a.py", name: "f", calls: new Uint8Array() };

/** A process that answers with `call`, and what happens to it. `end` makes its end known. */
function processOf(call: EdgeMethods[string]) {
  const world = new DenoWorld({ logLevel: "off" });
  const [link, far] = inlinePair(world, NEAR, world, FAR);
  new Edge(Promise.resolve(far), FAR, { ping: () => null, call });
  const killed = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<ChildEnd>();
  const child: PythonChild = {
    link: Promise.resolve(link),
    local: NEAR,
    ended: ended.promise,
    kill: () => killed.resolve(),
    ref: () => {},
    unref: () => {},
  };
  const end = () => ended.resolve({ code: 137, signal: "SIGKILL", stderrTail: "" });
  const process = new PythonProcess("python3", {}, child);
  return { process, link, far, killed: killed.promise, end };
}

/** A process that never answers. */
function silentChild(kill: () => void = () => {}): PythonChild {
  return {
    link: new Promise<Link>(() => {}),
    local: NEAR,
    ended: new Promise(() => {}),
    kill,
    ref: () => {},
    unref: () => {},
  };
}

Deno.test("PythonProcess is not alive once it was killed, and answers no call of before", async () => {
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<Uint8Array>();
  const { process } = processOf(() => {
    asked.resolve();
    return answer.promise;
  });
  const call = process.call(BATCH);
  await asked.promise;
  assertEquals(process.isAlive, true);
  process.kill();
  assertEquals(process.isAlive, false);
  answer.resolve(new Uint8Array([1]));
  const { code } = await assertRejects(() => call, LeatError) as LeatError;
  assertEquals(code, "cancelled");
});

Deno.test("PythonProcess is not alive once its link has ended, and says how the process ended", async () => {
  const { process, link, far, end } = processOf(() => new Uint8Array());
  await process.call(BATCH);
  far.close(new LeatError("unavailable", "The other process has closed its end"));
  await link.closed;
  assertEquals(process.isAlive, false);
  const call = process.call(BATCH);
  end();
  const { code, message } = await assertRejects(() => call, LeatError) as LeatError;
  assertEquals(code, "internal");
  assertEquals(message, "The Python process that called the function has ended by SIGKILL");
});

Deno.test("PythonProcess says that the disk of the slot files is full, not how its process ended", async () => {
  const { process, link, killed, end } = processOf(() => new Promise(() => {}));
  const call = process.call(BATCH);
  // As a link does when it cannot write a slot.
  link.close(new LeatError("resource_exhausted", "The disk of the slot files is full"));
  await killed;
  end();
  const { code, message } = await assertRejects(() => call, LeatError) as LeatError;
  assertEquals([code, message], ["resource_exhausted", "The disk of the slot files is full"]);
});

Deno.test("PythonProcess that does not start in time is ended, and frees its callers", async () => {
  const killed = Promise.withResolvers<void>();
  const child = silentChild(killed.resolve);
  const process = new PythonProcess("python3", {}, child, 1);
  const { code, message } = await assertRejects(() => process.call(BATCH), LeatError) as LeatError;
  await killed.promise;
  assertEquals([code, process.isAlive], ["failed_precondition", false]);
  assertStringIncludes(message, "python3 has not started within 0.001 s");
});

Deno.test("PythonCalls does not repeat calls whose interpreter does not start in time", async () => {
  let starts = 0;
  const run = (batch: PythonBatch) => {
    starts++;
    return new PythonProcess("python3", {}, silentChild(), 1).call(batch);
  };
  const calls = new PythonCalls({ run, close: () => {} });
  const count = 4 * navigator.hardwareConcurrency;
  const codes = await Promise.all(
    Array.from(
      { length: count },
      () => calls.call(BATCH, [], 0).catch((error: LeatError) => error.code),
    ),
  );
  assertEquals(new Set(codes), new Set(["failed_precondition"]));
  assert(starts < count, `${starts} starts for ${count} calls`);
});

Deno.test("PythonProcess names the remedy for what its interpreter lacks", async () => {
  const remedies = {
    "error while loading shared libraries: libpython3.12.so.1.0": 'allow=["python", "run"]',
    "ModuleNotFoundError: No module named 'leat'": "pip install ./python",
  };
  for (const [stderrTail, remedy] of Object.entries(remedies)) {
    const child: PythonChild = {
      link: Promise.reject(new LeatError("unavailable", "The other process has closed its end")),
      local: NEAR,
      ended: Promise.resolve({ code: 127, signal: null, stderrTail }),
      kill: () => {},
      ref: () => {},
      unref: () => {},
    };
    const { message } = await assertRejects(
      () => new PythonProcess("python3", {}, child).call(BATCH),
      LeatError,
      `with exit code 127: ${stderrTail}. `,
    );
    assertStringIncludes(message, remedy);
  }
});
