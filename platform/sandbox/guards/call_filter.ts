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
/** ioctl(2): requests that type into a terminal or change attributes of files. */
const DENIED_IOCTLS = {
  TIOCSTI: 0x5412,
  TIOCLINUX: 0x541c,
  FS_IOC_SETFLAGS: 0x4008_6602,
  FS_IOC32_SETFLAGS: 0x4004_6602,
  FS_IOC_FSSETXATTR: 0x401c_5820,
};
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
    ...when(calls.ioctl, unless(lowerHalf(1), Object.values(DENIED_IOCTLS))),
    ...when(calls.socket, allowsNetwork ? internetSockets() : [DENY]),
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

/** Runs instructions if the loaded value equals `value`. The last of them must be a return. */
function when(value: number, then: readonly Instruction[]): Instruction[] {
  return [[JUMP_IF_EQUAL, 0, then.length, value], ...then];
}

/** Allows a call only if a field has one of the values. */
function onlyIf(at: number, values: readonly number[]): Instruction[] {
  return [load(at), ...values.flatMap((value) => when(value, [ALLOW])), DENY];
}

/** Allows a call unless a field has one of the values. */
function unless(at: number, values: readonly number[]): Instruction[] {
  return [load(at), ...values.flatMap((value) => when(value, [DENY])), ALLOW];
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
