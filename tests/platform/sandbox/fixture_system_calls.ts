/**
 * Makes system calls through the C library and prints each result: a program for tests of
 * confinement. Its argument is a list of calls, as JSON.
 */

/** A function of the C library and its arguments: a text becomes a pointer to it. */
export type Call = readonly [name: string, ...args: readonly (number | string)[]];

/** The result of a call, and `errno` if that is -1. */
export interface CallOutcome {
  readonly result: number;
  readonly errno: number;
}

if (import.meta.main) {
  const calls: Call[] = JSON.parse(Deno.args[0]!);
  const outcomes = calls.map(([name, ...args]): CallOutcome => {
    const values = Array.from({ length: 6 }, (_, i) => valueOf(args[i] ?? 0));
    // As a parameter, a text keeps its memory until the call returns.
    const parameters = values.map((value) => typeof value === "bigint" ? "u64" : "buffer");
    const { symbols } = Deno.dlopen("libc.so.6", {
      call: { name, parameters, result: "i32" },
      errnoAt: { name: "__errno_location", parameters: [], result: "pointer" },
    });
    const errnoAt = new Deno.UnsafePointerView(symbols.errnoAt()!);
    const result = symbols.call(...values);
    return { result, errno: result === -1 ? errnoAt.getInt32() : 0 };
  });
  console.log(
    JSON.stringify({ outcomes, status: ownStatus(), guards: JSON.parse(Deno.args[1] ?? "{}") }),
  );
}

function valueOf(arg: number | string): bigint | Uint8Array<ArrayBuffer> {
  if (typeof arg === "number") return BigInt.asUintN(64, BigInt(arg));
  return new TextEncoder().encode(`${arg}\0`);
}

/** The kernel's status of this process. Deno shows it only with all permissions. */
function ownStatus(): string {
  const { symbols } = Deno.dlopen("libc.so.6", {
    open: { parameters: ["buffer", "i32"], result: "i32" },
    read: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  });
  const fd = symbols.open(new TextEncoder().encode("/proc/self/status\0"), 0);
  const bytes = new Uint8Array(2 ** 16);
  const count = symbols.read(fd, bytes, BigInt(bytes.length));
  return new TextDecoder().decode(bytes.subarray(0, Number(count)));
}
