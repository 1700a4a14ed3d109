/** The Linux system calls with which a process restricts itself, by FFI to the C library. */
import { LeatError } from "../../../core/error.ts";
import type { ExecPassword } from "./call_filter.ts";
import { callsOf } from "./denied_calls.ts";

/** File names of the C library: glibc's and musl's. */
const LIBRARIES = ["libc.so.6", "libc.so"];

const SYMBOLS = {
  open: { parameters: ["buffer", "i32"], result: "i32" },
  close: { parameters: ["i32"], result: "i32" },
  read: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  write: { parameters: ["i32", "buffer", "usize"], result: "isize" },
  fcntl: { parameters: ["i32", "i32", "i32"], result: "i32" },
  dup2: { parameters: ["i32", "i32"], result: "i32" },
  prctl: { parameters: ["i32", "u64", "u64", "u64", "u64"], result: "i32" },
  setSeccomp: { name: "prctl", parameters: ["i32", "u64", "buffer", "u64", "u64"], result: "i32" },
  setrlimit: { parameters: ["i32", "buffer"], result: "i32" },
  capset: { parameters: ["buffer", "buffer"], result: "i32" },
  execveat: {
    name: "syscall",
    parameters: ["i64", "u64", "buffer", "buffer", "buffer", "u64"],
    result: "i64",
  },
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
const PR_SET_SECCOMP = 22;
const PR_CAPBSET_DROP = 24;
const PR_SET_SECUREBITS = 28;
const PR_SET_NO_NEW_PRIVS = 38;
const PR_CAP_AMBIENT = 47;
const PR_CAP_AMBIENT_CLEAR_ALL = 4n;
const SECCOMP_MODE_FILTER = 2n;
const SOCK_FPROG_BYTES = 16;
const SOCK_FILTER_BYTES = 8;
const SIGKILL = 9n;
// capabilities(7)
const LINUX_CAPABILITY_VERSION_3 = 0x2008_0522;
const CAPABILITIES_MAX = 64n;
/** User id 0 gives no privileges. Each setting has a second bit that locks it. */
const SECUREBITS = 0b1110_1111n;
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
const STANDARD_OUTPUT = 1;
const STANDARD_ERROR = 2;
// fcntl(2)
const F_DUPFD_CLOEXEC = 1030;
// open(2)
const O_PATH = 0o10000000;
const O_CLOEXEC = 0o2000000;
const AT_FDCWD = 0xffff_ff9cn;

const READ_BYTES = 64 * 2 ** 10;

export class KernelCalls {
  readonly #calls: Deno.DynamicLibrary<typeof SYMBOLS>["symbols"] = openLibrary().symbols;

  /** Makes the kernel kill this process when its parent thread ends, for any reason. */
  dieWithParent(): void {
    this.#calls.prctl(PR_SET_PDEATHSIG, SIGKILL, 0n, 0n, 0n);
  }

  /**
   * Moves standard output to a file descriptor that no other program inherits, and returns it. What
   * is written to standard output from now on, by any thread, goes to standard error.
   */
  moveOutput(): number {
    const fd = this.#calls.fcntl(STANDARD_OUTPUT, F_DUPFD_CLOEXEC, STANDARD_FILES);
    if (fd >= 0 && this.#calls.dup2(STANDARD_ERROR, STANDARD_OUTPUT) >= 0) return fd;
    throw new LeatError(
      "unavailable",
      "Standard output could not be moved: check that standard output and standard error are open, and " +
        "the limit of open files (ulimit -n)",
    );
  }

  /** Writes all bytes to a pipe. A full pipe blocks this thread. */
  write(fd: number, bytes: Uint8Array<ArrayBuffer>): void {
    for (let at = 0; at < bytes.length;) {
      const written = this.#calls.write(fd, bytes.subarray(at), BigInt(bytes.length - at));
      if (written < 0) throw new LeatError("unavailable", "The pipe cannot be written");
      at += Number(written);
    }
  }

  close(fd: number): void {
    this.#calls.close(fd);
  }

  /** Limits private writable memory: heap, buffers, stacks, WebAssembly, generated code. */
  limitMemory(bytesMax: number): void {
    this.#limit(RLIMIT_DATA, bytesMax);
  }

  limitOpenFiles(max: number): void {
    this.#limit(RLIMIT_NOFILE, max);
  }

  limitFileSize(bytesMax: number): void {
    this.#limit(RLIMIT_FSIZE, bytesMax);
  }

  /** Disables core files, which would reveal the memory of functions. */
  disableCoreFiles(): void {
    this.#limit(RLIMIT_CORE, 0);
  }

  /** The version of the kernel's Landlock, or 0 without Landlock. */
  landlockVersion(): number {
    const version = this.#calls.createRuleset(
      SYS_LANDLOCK_CREATE_RULESET,
      null,
      0n,
      LANDLOCK_CREATE_RULESET_VERSION,
    );
    return Math.max(0, Number(version));
  }

  /** Creates a Landlock ruleset from a `landlock_ruleset_attr`; returns its file descriptor. */
  createRuleset(attributes: Uint8Array<ArrayBuffer>): number {
    const size = BigInt(attributes.byteLength);
    return Number(this.#calls.createRuleset(SYS_LANDLOCK_CREATE_RULESET, attributes, size, 0));
  }

  /** Allows accesses to a file or below a folder. False if the path is missing or the kernel refuses. */
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

  /** Restricts this process, and every program that it executes, to the rules. */
  restrictSelf(ruleset: number): void {
    const restricted = this.#calls.restrictSelf(SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0);
    if (Number(restricted) !== 0) throw failed("landlock_restrict_self");
  }

  /** Prevents that executing a program, even a set-user-ID one, gives privileges. */
  setNoNewPrivileges(): void {
    this.#calls.prctl(PR_SET_NO_NEW_PRIVS, 1n, 0n, 0n, 0n);
  }

  /** Drops root's capabilities for good. Does nothing if there are none. */
  dropCapabilities(): void {
    this.#calls.prctl(PR_SET_SECUREBITS, SECUREBITS, 0n, 0n, 0n);
    for (let capability = 0n; capability < CAPABILITIES_MAX; capability++) {
      this.#calls.prctl(PR_CAPBSET_DROP, capability, 0n, 0n, 0n);
    }
    this.#calls.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0n, 0n, 0n);
    const header = new Uint8Array(new Uint32Array([LINUX_CAPABILITY_VERSION_3, 0]).buffer);
    // The effective, permitted and inheritable sets, in two halves of 12 bytes.
    if (this.#calls.capset(header, new Uint8Array(24)) !== 0) throw failed("capset");
  }

  /** Installs a filter of system calls. False if the kernel does not support filters. */
  filterCalls(filter: Uint8Array<ArrayBuffer>): boolean {
    // sock_fprog: u16, and a pointer to the filter, which follows here.
    const program = new Uint8Array(new ArrayBuffer(SOCK_FPROG_BYTES + filter.byteLength));
    program.set(filter, SOCK_FPROG_BYTES);
    const fields = new BigUint64Array(program.buffer, 0, 2);
    fields[0] = BigInt(filter.byteLength / SOCK_FILTER_BYTES);
    fields[1] = addressOf(program) + BigInt(SOCK_FPROG_BYTES);
    return this.#calls.setSeccomp(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0n, 0n) === 0;
  }

  /** The files mapped into this process, which are Deno and its libraries. */
  mappedFiles(): string[] {
    const text = new TextDecoder().decode(this.#contents("/proc/self/maps"));
    return [...new Set([...text.matchAll(/ (\/\S.*)$/gm)].map(([, path]) => path!))];
  }

  /**
   * Replaces this program with another, which inherits only the standard file descriptors.
   * @param variables Variables of its environment, which precede those that it inherits.
   * @param password The password that the filter of system calls requires.
   */
  exec(
    command: readonly string[],
    variables: readonly string[],
    [first, last]: ExecPassword,
  ): never {
    this.#calls.closeRange(SYS_CLOSE_RANGE, STANDARD_FILES, 0xffff_ffff, CLOSE_RANGE_CLOEXEC);
    const inherited = stringsIn(this.#contents("/proc/self/environ"));
    // Of two values of a variable, the first one counts.
    const environment = [...variables.map(cString), ...inherited];
    // One block that the call has as a parameter: what is known by its address alone may be freed.
    const { block, addresses } = inOneBlock([...command.map(cString), ...environment]);
    this.#calls.execveat(
      BigInt(callsOf(Deno.build.arch).byArguments.execveat),
      BigInt(first) << 32n | AT_FDCWD,
      block,
      pointers(addresses.slice(0, command.length)),
      pointers(addresses.slice(command.length)),
      BigInt(last) << 32n,
    );
    throw failed(`execveat of ${command[0]}`);
  }

  /** The content of a file under `/proc`; empty if the file is missing. */
  #contents(path: string): Uint8Array {
    const fd = this.#calls.open(cString(path), O_CLOEXEC);
    const chunks: number[] = [];
    const chunk = new Uint8Array(READ_BYTES);
    for (;;) {
      const count = Number(this.#calls.read(fd, chunk, BigInt(chunk.byteLength)));
      if (count <= 0) break;
      for (const byte of chunk.subarray(0, count)) chunks.push(byte);
    }
    this.#calls.close(fd);
    return Uint8Array.from(chunks);
  }

  /** Ignores failures, because setting a limit fails only if a lower limit is already set. */
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
      // Try the next one.
    }
  }
  throw new LeatError("unavailable", `The C library was not found: ${LIBRARIES.join(", ")}`);
}

function cString(text: string): Uint8Array<ArrayBuffer> {
  return new TextEncoder().encode(`${text}\0`);
}

/** Splits a block into its strings, each with its terminating 0. */
function stringsIn(block: Uint8Array): Uint8Array<ArrayBuffer>[] {
  const strings: Uint8Array<ArrayBuffer>[] = [];
  for (let start = 0; start < block.length;) {
    const end = block.indexOf(0, start);
    if (end === -1) break;
    strings.push(block.slice(start, end + 1));
    start = end + 1;
  }
  return strings;
}

/** The strings one after another, and the address of each. The first is at the block's start. */
function inOneBlock(
  strings: readonly Uint8Array[],
): { readonly block: Uint8Array<ArrayBuffer>; readonly addresses: readonly bigint[] } {
  const length = strings.reduce((sum, { byteLength }) => sum + byteLength, 0);
  const block = new Uint8Array(new ArrayBuffer(length));
  const base = addressOf(block);
  const addresses: bigint[] = [];
  let at = 0;
  for (const string of strings) {
    block.set(string, at);
    addresses.push(base + BigInt(at));
    at += string.byteLength;
  }
  return { block, addresses };
}

/** A null-terminated list of pointers. */
function pointers(addresses: readonly bigint[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(new BigUint64Array([...addresses, 0n]).buffer);
}

/** Valid as long as the array is in use. Its memory must be an `ArrayBuffer` of its own. */
function addressOf(bytes: Uint8Array<ArrayBuffer>): bigint {
  return BigInt(Deno.UnsafePointer.value(Deno.UnsafePointer.of(bytes)));
}

function failed(call: string): LeatError {
  return new LeatError("unavailable", `A runner could not be confined: ${call} failed`);
}
