/**
 * The calls of Linux by which a process limits itself, through FFI to the C library.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";

/** Names of the C library, glibc's and musl's. */
const LIBRARIES = ["libc.so.6", "libc.so"];

const SYMBOLS = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  read: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  setrlimit: { parameters: ["i32", "buffer"], result: "i32" },
  execv: { parameters: ["buffer", "buffer"], result: "i32" },
  createRuleset: { name: "syscall", parameters: ["i64", "buffer", "usize", "u32"], result: "i64" },
  addRule: {
    name: "syscall",
    parameters: ["i64", "i32", "i32", "buffer", "u32"],
    result: "i64",
  },
  closeRange: { name: "syscall", parameters: ["i64", "u32", "u32", "u32"], result: "i64" },
  restrictSelf: { name: "syscall", parameters: ["i64", "i32", "u32"], result: "i64" },
} as const;

// prctl(2)
const PR_SET_PDEATHSIG = 1;
const PR_SET_NO_NEW_PRIVS = 38;
const SIGKILL = 9n;
// setrlimit(2)
const RLIMIT_FSIZE = 1;
const RLIMIT_DATA = 2;
const RLIMIT_CORE = 4;
const RLIMIT_NOFILE = 7;
// landlock(7): the numbers are the same on all architectures.
const SYS_LANDLOCK_CREATE_RULESET = 444n;
const SYS_LANDLOCK_ADD_RULE = 445n;
const SYS_LANDLOCK_RESTRICT_SELF = 446n;
const LANDLOCK_CREATE_RULESET_VERSION = 1;
const LANDLOCK_RULE_PATH_BENEATH = 1;
// close_range(2)
const SYS_CLOSE_RANGE = 436n;
const CLOSE_RANGE_CLOEXEC = 4;
const STANDARD_FILES = 3;
// open(2)
const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;

/** See the module. */
export class KernelCalls {
  readonly #calls: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"] = openLibrary().symbols;

  /** The kernel kills this process when the thread that started it ends, however that happens. */
  dieWithParent(): void {
    this.#calls.prctl(PR_SET_PDEATHSIG, SIGKILL, 0n, 0n, 0n);
  }

  /** Bounds private writable memory: heap, buffers, stacks, WebAssembly, generated code. */
  limitMemory(bytesMax: number): void {
    this.#limit(RLIMIT_DATA, bytesMax);
  }

  limitOpenFiles(max: number): void {
    this.#limit(RLIMIT_NOFILE, max);
  }

  limitFileSize(bytesMax: number): void {
    this.#limit(RLIMIT_FSIZE, bytesMax);
  }

  /** A core file would hold what the functions had in memory. */
  writeNoCoreFiles(): void {
    this.#limit(RLIMIT_CORE, 0);
  }

  /** Which version of Landlock the kernel has; 0 where there is none. */
  landlockVersion(): number {
    const version = this.#calls.createRuleset(
      SYS_LANDLOCK_CREATE_RULESET,
      null,
      0n,
      LANDLOCK_CREATE_RULESET_VERSION,
    );
    return Math.max(0, Number(version));
  }

  /** Makes a set of Landlock rules of a `landlock_ruleset_attr`; the answer names it. */
  createRuleset(attributes: Uint8Array<ArrayBuffer>): number {
    const size = BigInt(attributes.byteLength);
    return Number(this.#calls.createRuleset(SYS_LANDLOCK_CREATE_RULESET, attributes, size, 0));
  }

  /** Allows some accesses to a file, or to what is below a folder. False where it is not there. */
  allowBeneath(ruleset: number, path: string, accesses: bigint): boolean {
    const fd = this.#calls.open(cString(path), O_PATH | O_CLOEXEC);
    if (fd < 0) return false;
    // landlock_path_beneath_attr is packed: u64, i32.
    const rule = new Uint8Array(12);
    const view = new DataView(rule.buffer);
    view.setBigUint64(0, accesses, true);
    view.setInt32(8, fd, true);
    const added = this.#calls.addRule(
      SYS_LANDLOCK_ADD_RULE,
      ruleset,
      LANDLOCK_RULE_PATH_BENEATH,
      rule,
      0,
    );
    this.#calls.close(fd);
    return Number(added) === 0;
  }

  /** From here on this process, and what it becomes, has what the rules allow. */
  restrictSelf(ruleset: number): void {
    this.#calls.prctl(PR_SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n);
    const restricted = this.#calls.restrictSelf(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0);
    if (Number(restricted) !== 0) throw failed("landlock_restrict_self");
  }

  /** The files that are mapped into this process: Deno and its libraries, wherever the system has them. */
  mappedFiles(): string[] {
    const fd = this.#calls.open(cString("/proc/self/maps"), O_CLOEXEC);
    if (fd < 0) return [];
    const decoder = new TextDecoder();
    const chunk = new Uint8Array(64 * 2 ** 10);
    let text = "";
    for (;;) {
      const count = Number(this.#calls.read(fd, chunk, BigInt(chunk.byteLength)));
      if (count <= 0) break;
      text += decoder.decode(chunk.subarray(0, count), { stream: true });
    }
    this.#calls.close(fd);
    return [...new Set([...text.matchAll(/ (\/\S.*)$/gm)].map(([, path]) => path!))];
  }

  /** Replaces this program by another one, which has of the files that are open the standard ones alone. */
  become(command: readonly string[]): never {
    this.#calls.closeRange(SYS_CLOSE_RANGE, STANDARD_FILES, 0xffff_ffff, CLOSE_RANGE_CLOEXEC);
    const strings = command.map(cString);
    // The last one ends the list.
    const pointers = new BigUint64Array(strings.length + 1);
    for (const [i, string] of strings.entries()) {
      pointers[i] = BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(string)));
    }
    this.#calls.execv(strings[0]!, new Uint8Array(pointers.buffer));
    throw failed(`execv of ${command[0]}`);
  }

  /** Fails only where a lower limit holds already, which is as good. */
  #limit(resource: number, max: number): void {
    const limits = new BigUint64Array([BigInt(max), BigInt(max)]);
    this.#calls.setrlimit(resource, new Uint8Array(limits.buffer));
  }
}

function openLibrary(): Deno.DynamicLibrary<typeof SYMBOLS> {
  for (const name of LIBRARIES) {
    try {
      return Deno.dlopen(name, SYMBOLS);
    } catch {
      // The next one.
    }
  }
  throw new LeatError("unavailable", `The C library was not found: ${LIBRARIES.join(", ")}`);
}

function cString(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}

function failed(call: string): LeatError {
  return new LeatError("unavailable", `A runner could not be confined: ${call} failed`);
}
