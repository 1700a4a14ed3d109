/** Calls of Python functions that share requests, with a test as the pool. */
import { LeatError } from "../../../core/error.ts";
import { PythonCalls } from "../../../platform/python/python_calls.ts";
import type { PythonPool } from "../../../platform/python/python_pool.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { assert, assertEquals } from "../../assert.ts";

const CALLEE = { file: "a.py", name: "same" };
/** Several requests, each with as many calls as fit one. */
const CALLS = 32 * navigator.hardwareConcurrency;

interface Request {
  readonly calls: readonly { readonly args: readonly unknown[] }[];
}

/** A pool whose function returns its argument. `spoil` may answer a request instead. */
function poolOf(spoil: (args: readonly unknown[]) => Uint8Array | undefined): PythonPool {
  return {
    run: async ({ calls }) => {
      const args = (decodeMessage(calls) as Request).calls.map(({ args: [arg] }) => arg);
      return await spoil(args) ?? encodeMessage(args.map((value) => ({ value })));
    },
    close: () => {},
  };
}

/** Calls a function with numbers, the one at 7 replaced, and requires that only this call fails. */
async function requireOneFailure(pool: PythonPool, at7: unknown, code: string): Promise<void> {
  const calls = new PythonCalls(pool);
  const call = (x: number) =>
    calls.call(CALLEE, [x === 7 ? at7 : x], 0).catch((error: LeatError) => error.code);
  const outcomes = await Promise.all(Array.from({ length: CALLS }, (_, x) => call(x)));
  assertEquals(outcomes, Array.from({ length: CALLS }, (_, x) => x === 7 ? code : x));
}

Deno.test("PythonCalls fails only the call whose argument cannot be sent", async () => {
  await requireOneFailure(poolOf(() => undefined), new Date(0), "invalid_argument");
});

Deno.test("PythonCalls fails only the call whose result cannot be read", async () => {
  const pool = poolOf((args) => args.includes(7) ? new Uint8Array([1, 2]) : undefined);
  await requireOneFailure(pool, 7, "data_loss");
});

Deno.test("PythonCalls fails only the call for which its pool fails", async () => {
  const pool = poolOf((args) => {
    if (args.includes(7)) throw new LeatError("internal", "the process has ended");
    return undefined;
  });
  await requireOneFailure(pool, 7, "internal");
});

Deno.test("PythonCalls does not repeat calls of which each would fail alike, as without an interpreter", async () => {
  let requests = 0;
  const pool = poolOf(() => {
    requests++;
    throw new LeatError("failed_precondition", "the interpreter lacks leat");
  });
  const calls = new PythonCalls(pool);
  const codes = await Promise.all(
    Array.from(
      { length: CALLS },
      (_, x) => calls.call(CALLEE, [x], 0).catch((error: LeatError) => error.code),
    ),
  );
  assertEquals(new Set(codes), new Set(["failed_precondition"]));
  assert(requests < CALLS, `${requests} requests`);
});
