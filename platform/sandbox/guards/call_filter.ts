/**
 * The seccomp(2) filter of a confined process. A denied call fails with EPERM, a call that is newer
 * than this filter with ENOSYS.
 */
import { type Architecture, callsOf, NEWEST_CALL } from "./denied_calls.ts";

export interface CallFilterOptions {
  readonly architecture: Architecture;
  /** The id of the process, which may send signals only to itself. */
  readonly pid: number;
  /** Whether the process may open sockets to other hosts. */
  readonly allowsNetwork: boolean;
  /**
   * The password with which the launcher calls `execveat`. The program that it starts does not know
   * the password.
   */
  readonly password: ExecPassword;
}

/**
 * Random upper halves of the first and last argument of `execveat`. The kernel ignores them, but the
 * filter compares them, so it allows only the launcher's own call.
 */
export type ExecPassword = readonly [first: number, last: number];

/** A BPF instruction: its operation, its jumps if true and if false, and its value. */
export type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

// Instructions: linux/bpf_common.h.
const LOAD = 0x20;
const AND = 0x54;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_GREATER = 0x25;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;
// Outcomes: linux/seccomp.h.
const ALLOW: Instruction = [RETURN, 0, 0, 0x7fff_0000];
const FAIL_WITH = 0x0005_0000;
const EPERM = 1;
const ENOSYS = 38;
const DENY: Instruction = [RETURN, 0, 0, FAIL_WITH | EPERM];
const UNKNOWN: Instruction = [RETURN, 0, 0, FAIL_WITH | ENOSYS];

/** `AUDIT_ARCH_…`: the filter checks it, as a process can use another architecture's call numbers. */
const AUDIT_ARCHITECTURES: Readonly<Record<Architecture, number>> = {
  x86_64: 0xc000_003e,
  aarch64: 0xc000_00b7,
};

// clone(2)
const CLONE_THREAD = 0x0001_0000;
/** Namespaces of mounts, cgroups, host names, IPC, users, processes and networks. */
const CLONE_NEW_ANYTHING = 0x7e02_0000;
// socket(2)
const AF_INET = 2;
const AF_INET6 = 10;
const AF_NETLINK = 16;
const NETLINK_ROUTE = 0;
const AF_UNIX = 1;
const SOCK_STREAM = 1;
/** The bits of a socket's type that are no flags. */
const SOCK_TYPE_MASK = 0xf;
/** open(2): the bits of how a file is opened that decide whether it is truncated. */
const OPEN_MASK = 0o1003;
/** To truncate a file that is not opened for writing. Landlock checks this only from Linux 6.2 on. */
const TRUNCATING_OPENS = { RDONLY_TRUNC: 0o1000, ACCMODE_TRUNC: 0o1003 };
/** mmap(2): the bits that tell what a mapping shares. */
const MAP_MASK = 0x23;
/** Memory that processes can share, which the limit of private memory does not count. */
const SHARED_MEMORY = { MAP_SHARED_ANONYMOUS: 0x21, MAP_SHARED_VALIDATE_ANONYMOUS: 0x23 };
/** ioctl(2): what Deno and the C library ask of pipes, sockets and terminals. */
const ALLOWED_IOCTLS = {
  TCGETS: 0x5401,
  TCGETS2: 0x802c_542a,
  TIOCGPGRP: 0x540f,
  TIOCGWINSZ: 0x5413,
  FIONREAD: 0x541b,
  FIONBIO: 0x5421,
  FIONCLEX: 0x5450,
  FIOCLEX: 0x5451,
};
/** fcntl(2): operations with which the kernel sends any signal to another process. */
const DENIED_FCNTLS = { F_SETOWN: 8, F_SETSIG: 10, F_SETOWN_EX: 15 };
/** prctl(2): operations that would loosen the launcher's restrictions. */
const DENIED_PRCTLS = {
  PR_SET_PDEATHSIG: 1,
  PR_SET_DUMPABLE: 4,
  PR_SET_KEEPCAPS: 8,
  PR_SET_SECUREBITS: 28,
  PR_SET_MM: 35,
  PR_SET_CHILD_SUBREAPER: 36,
  PR_CAP_AMBIENT: 47,
  PR_SET_SPECULATION_CTRL: 53,
  PR_SCHED_CORE: 62,
  PR_SET_PTRACER: 0x5961_6d61,
};

/** Returns the filter as an array of `sock_filter`. */
export function callFilter(options: CallFilterOptions): Uint8Array<ArrayBuffer> {
  const { architecture, pid, allowsNetwork, password: [first, last] } = options;
  const { denied, byArguments: calls } = callsOf(architecture);
  const toItself = onlyIf(lowerHalf(0), [pid]);
  return filterProgram([
    load(ARCHITECTURE_AT),
    [JUMP_IF_EQUAL, 1, 0, AUDIT_ARCHITECTURES[architecture]],
    DENY,
    load(NUMBER_AT),
    // ENOSYS makes programs use their fallbacks for newer calls. It also denies x32, whose numbers are large.
    [JUMP_IF_GREATER, 0, 1, NEWEST_CALL],
    UNKNOWN,
    ...denied.flatMap((number) => when(number, [DENY])),
    // clone3 passes its flags in memory, which a filter cannot read. The C library falls back to clone.
    ...when(calls.clone3, [UNKNOWN]),
    // The process may start threads, but no processes.
    ...when(calls.clone, [
      load(lowerHalf(0)),
      [JUMP_IF_ANY_BIT, 1, 0, CLONE_NEW_ANYTHING],
      [JUMP_IF_ANY_BIT, 1, 0, CLONE_THREAD],
      DENY,
      ALLOW,
    ]),
    ...when(calls.execveat, [
      load(upperHalf(0)),
      [JUMP_IF_EQUAL, 0, 2, first],
      load(upperHalf(4)),
      [JUMP_IF_EQUAL, 1, 0, last],
      DENY,
      ALLOW,
    ]),
    ...when(calls.kill, toItself),
    ...when(calls.tgkill, toItself),
    ...when(calls.rt_sigqueueinfo, toItself),
    ...when(calls.rt_tgsigqueueinfo, toItself),
    ...when(calls.prlimit64, onlyIf(lowerHalf(0), [0, pid])),
    ...when(calls.prctl, unless(lowerHalf(0), Object.values(DENIED_PRCTLS))),
    ...when(calls.ioctl, onlyIf(lowerHalf(1), Object.values(ALLOWED_IOCTLS))),
    ...when(calls.fcntl, unless(lowerHalf(1), Object.values(DENIED_FCNTLS))),
    ...when(calls.open, truncatingOnlyWriters(lowerHalf(1))),
    ...when(calls.openat, truncatingOnlyWriters(lowerHalf(2))),
    // openat2 passes its flags in memory, too. The standard libraries fall back to openat.
    ...when(calls.openat2, [UNKNOWN]),
    ...when(calls.mmap, unless(lowerHalf(3), Object.values(SHARED_MEMORY), MAP_MASK)),
    ...when(calls.socket, allowsNetwork ? internetSockets() : [DENY]),
    ...when(calls.socketpair, connectedPairs()),
    ALLOW,
  ]);
}

// Fields of seccomp_data. The lower half of a number comes first on both architectures.
const NUMBER_AT = 0;
const ARCHITECTURE_AT = 4;
const ARGUMENTS_AT = 16;

function lowerHalf(argument: number): number {
  return ARGUMENTS_AT + 8 * argument;
}

function upperHalf(argument: number): number {
  return lowerHalf(argument) + 4;
}

function load(at: number): Instruction {
  return [LOAD, 0, 0, at];
}

/**
 * Runs instructions if the loaded value equals `value`: none for the number of a call that the
 * architecture lacks. The last of them must be a return.
 */
function when(value: number | undefined, then: readonly Instruction[]): Instruction[] {
  return value === undefined ? [] : [[JUMP_IF_EQUAL, 0, then.length, value], ...then];
}

/** Allows a call only if a field has one of the values. */
function onlyIf(at: number, values: readonly number[]): Instruction[] {
  return [load(at), ...values.flatMap((value) => when(value, [ALLOW])), DENY];
}

/** Allows a call unless a field, or its bits of `mask`, have one of the values. */
function unless(at: number, values: readonly number[], mask = 0xffff_ffff): Instruction[] {
  return [load(at), [AND, 0, 0, mask], ...values.flatMap((value) => when(value, [DENY])), ALLOW];
}

function truncatingOnlyWriters(flagsAt: number): Instruction[] {
  return unless(flagsAt, Object.values(TRUNCATING_OPENS), OPEN_MASK);
}

/** Allows pairs of sockets that can send to no other socket. */
function connectedPairs(): Instruction[] {
  return [
    load(lowerHalf(0)),
    [JUMP_IF_EQUAL, 1, 0, AF_UNIX],
    DENY,
    load(lowerHalf(1)),
    [AND, 0, 0, SOCK_TYPE_MASK],
    ...when(SOCK_STREAM, [ALLOW]),
    DENY,
  ];
}

/** Allows sockets for IP, and for netlink, with which name resolution finds this host's addresses. */
function internetSockets(): Instruction[] {
  return [
    load(lowerHalf(0)),
    ...when(AF_INET, [ALLOW]),
    ...when(AF_INET6, [ALLOW]),
    ...when(AF_NETLINK, onlyIf(lowerHalf(2), [NETLINK_ROUTE])),
    DENY,
  ];
}

/** Encodes instructions for the kernel: an array of `sock_filter`. */
export function filterProgram(program: readonly Instruction[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(program.length * 8);
  const view = new DataView(bytes.buffer);
  for (const [i, [code, ifTrue, ifFalse, value]] of program.entries()) {
    view.setUint16(i * 8, code, true);
    view.setUint8(i * 8 + 2, ifTrue);
    view.setUint8(i * 8 + 3, ifFalse);
    view.setUint32(i * 8 + 4, value, true);
  }
  return bytes;
}
