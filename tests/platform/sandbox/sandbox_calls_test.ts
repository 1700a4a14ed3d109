/**
 * The kernel's denials in a confined process, whatever Deno's permissions are: system calls that it
 * never needs, and root's privileges.
 */
import { fileURLToPath } from "node:url";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { TempFolder } from "../../lib/temp_folder.ts";
import {
  callFilter,
  type CallFilterOptions,
} from "../../../platform/sandbox/guards/call_filter.ts";
import { KernelCalls } from "../../../platform/sandbox/guards/kernel_calls.ts";
import type { Launch } from "../../../platform/sandbox/guards/launcher.ts";
import type { Call, CallOutcome } from "./fixture_system_calls.ts";
import { filtered } from "./packet_filter.ts";
import { link, Sandbox } from "./sandbox_lib.ts";

const isLinux = Deno.build.os === "linux";
const EPERM = 1;
const PROGRAM = fileURLToPath(import.meta.resolve("./fixture_system_calls.ts"));
const LAUNCHER = fileURLToPath(import.meta.resolve("../../../platform/sandbox/guards/launcher.ts"));

const LAUNCHING: readonly string[] = [
  ...["run", "--quiet", "--no-config", "--no-lock", "--allow-ffi", "--allow-env"],
  ...["--allow-sys=homedir", LAUNCHER],
];

interface Probed {
  readonly outcomes: readonly CallOutcome[];
  readonly status: string;
  readonly guards: Record<string, unknown>;
}

type Environment = Readonly<Record<string, string>>;

async function probed(args: readonly string[], env: Environment = {}): Promise<Probed> {
  return await printed(args, { env }) as Probed;
}

/** What Deno prints, as JSON. */
async function printed(args: readonly string[], options: Deno.CommandOptions): Promise<unknown> {
  const { stdout, stderr } = await new Deno.Command("deno", { ...options, args: [...args] })
    .output();
  const text = new TextDecoder().decode(stdout);
  assert(text !== "", new TextDecoder().decode(stderr));
  return JSON.parse(text);
}

function programArgs(calls: readonly Call[]): string[] {
  const flags = ["--quiet", "--no-config", "--no-lock", "--allow-ffi"];
  return ["run", ...flags, PROGRAM, JSON.stringify(calls)];
}

/** Results of calls in a process that may call the C library, with all of Deno's permissions. */
function unguarded(calls: readonly Call[]): Promise<Probed> {
  return probed(programArgs(calls));
}

/** The same in a launched one. */
function guarded(
  calls: readonly Call[],
  options: Partial<Launch> & Pick<Launch, "writable">,
  env?: Environment,
): Promise<Probed> {
  const launch: Launch = {
    command: [Deno.execPath(), ...programArgs(calls)],
    readable: ["/"],
    allowsNetwork: false,
    memoryBytesMax: 2 ** 32,
    openFilesMax: 256,
    ...options,
  };
  return probed([...LAUNCHING, JSON.stringify(launch)], env);
}

/** Calls that any process may make, below a folder with a file `f`. */
function ordinaryCalls(folder: string): Call[] {
  const file = `${folder}/f`;
  return [
    ["chmod", file, 0o640],
    ["fchmodat", -100, file, 0o640, 0],
    ["chown", file, -1, -1],
    ["lchown", file, -1, -1],
    ["utimensat", -100, file, 0, 0],
    ["truncate", file, 0],
    ["open", file, 0o1000], // O_RDONLY | O_TRUNC
    ["symlink", file, `${folder}/symlink`],
    ["link", file, `${folder}/link`],
    ["mkfifo", `${folder}/fifo`, 0o600],
    ["personality", 0xffff_ffff],
    ["socket", 1, 1, 0], // AF_UNIX
    ["socket", 2, 2, 0], // AF_INET, UDP
    ["socket", 10, 1, 0], // AF_INET6, TCP
    ["socketpair", 1, 2, 0, "two files"], // AF_UNIX, datagrams
    ["fcntl", 1, 8, Deno.pid], // F_SETOWN
    ["fcntl", 1, 10, 9], // F_SETSIG
    ["memfd_create", "leat", 0],
    ["sched_setaffinity", 0, 128, "ÿ".repeat(64)],
    ["kill", Deno.pid, 0],
    ["prctl", 1, 0], // PR_SET_PDEATHSIG
    ["prctl", 4, 1], // PR_SET_DUMPABLE
  ];
}

/** Calls that would harm their process if they were allowed. */
const HARMFUL: readonly Call[] = [
  ["fork"],
  ["vfork"],
  ["execv", "/bin/true", 0],
  ["execveat", -100, "/bin/true", 0, 0, 0],
  ["ptrace", 0, 0, 0, 0],
  ["process_vm_readv", Deno.pid, 0, 0, 0, 0, 0],
  ["unshare", 0x1000_0000],
  ["setns", 0, 0],
  ["mount", "none", "/", "tmpfs", 0, 0],
  ["chroot", "/"],
  ["shmget", 0, 4096, 0],
  ["msgget", 0, 0],
  ["semget", 0, 1, 0],
  ["setuid", 65534],
  ["setgid", 65534],
  ["setpriority", 0, Deno.pid, 5],
  ["setxattr", PROGRAM, "user.leat", "x", 1, 0],
  ["socket", 17, 3, 0], // AF_PACKET
  ["socket", 38, 5, 0], // AF_ALG
  ["prlimit", Deno.pid, 7, 0, 0],
];

Deno.test({
  name: "a confined process has no capability, and is denied the calls that it never needs",
  ignore: !isLinux,
  async fn() {
    await using folder = await TempFolder.make();
    await Deno.writeTextFile(`${folder.path}/f`, "x");
    const calls = ordinaryCalls(folder.path);
    for (const [i, { result }] of (await unguarded(calls)).outcomes.entries()) {
      assert(result >= 0, `${calls[i]} fails by itself`);
    }
    for (const made of ["symlink", "link", "fifo"]) await Deno.remove(`${folder.path}/${made}`);
    const denied = [...calls, ...HARMFUL];
    const { outcomes, status, guards } = await guarded(denied, { writable: [folder.path] });
    assertEquals(guards.callFilter, true);
    for (const [i, outcome] of outcomes.entries()) {
      assertEquals(outcome, { result: -1, errno: EPERM }, `${denied[i]}`);
    }
    for (const set of ["CapInh", "CapPrm", "CapEff", "CapAmb"]) {
      assertMatch(status, new RegExp(`^${set}:\t0+$`, "m"));
    }
    assertMatch(status, /^NoNewPrivs:\t1$/m);
    assertMatch(status, /^Seccomp:\t2$/m);
  },
});

Deno.test({
  name: "a confined process with granted hosts opens only network sockets",
  ignore: !isLinux,
  async fn() {
    const calls: Call[] = [["socket", 2, 1, 0], ["socket", 10, 2, 0], ["socket", 1, 1, 0]];
    const { outcomes } = await guarded(calls, { writable: [], allowsNetwork: true });
    assertEquals(outcomes.map(({ result }) => result >= 0), [true, true, false]);
  },
});

const EACCES = 13;

Deno.test({
  name: "a confined process reads only what Deno needs of its folder and of the system",
  // The kernel decides it if it has Landlock.
  ignore: !isLinux || new KernelCalls().landlockVersion() === 0,
  async fn() {
    const kept = ["deps/a", "gen/b", "npm/c", "remote/d", "v8_code_cache_v2"];
    const secret = ["location_data/e", "webstorage/f", "secret", "credentials/token"];
    const contents = [...kept, ...secret].map((name) => [name, "x"]);
    await using folder = await TempFolder.make(Object.fromEntries(contents));
    const ofSystem = ["/etc/passwd", "/etc/ssl", "/etc/ssl/private", "/etc", "/root", "/home", "/"];
    const [needed, others] = [["/etc/hosts", "/dev/urandom"], ofSystem.filter(isThere)];
    const certificates = ["/etc/ssl/certs", "/etc/pki/tls/certs"].filter(isThere);
    const here = (names: string[]) => names.map((name) => `${folder.path}/${name}`);
    const allowed = [...here(kept), ...needed];
    const denied = [...here(secret), folder.path, ...others];
    const calls = [...allowed, ...denied, ...certificates]
      .map((path): Call => ["open", path, 0]);
    const options = { writable: [], readable: [PROGRAM] };
    const env = { DENO_DIR: folder.path };
    for (const allowsNetwork of [false, true]) {
      const { outcomes } = await guarded(calls, { ...options, allowsNetwork }, env);
      for (const [i, [, path]] of calls.entries()) {
        const isCertificate = i >= allowed.length + denied.length;
        const isAllowed = i < allowed.length || isCertificate && allowsNetwork;
        const { result, errno } = outcomes[i]!;
        assertEquals(result >= 0 ? 0 : errno, isAllowed ? 0 : EACCES, `${path}`);
      }
    }
  },
});

Deno.test({
  name: "a confined process uses the same cache of Deno as its worker, also without HOME",
  ignore: !isLinux,
  async fn() {
    const code = "console.log(JSON.stringify({ denoDir: Deno.env.get('DENO_DIR') }))";
    const program = ["run", "--no-config", "--allow-env", `data:text/javascript,${code}`];
    const launch: Launch = {
      command: [Deno.execPath(), ...program],
      readable: ["/"],
      writable: [],
      allowsNetwork: false,
      memoryBytesMax: 2 ** 32,
      openFilesMax: 256,
    };
    await using folder = await TempFolder.make();
    const environments: Environment[] = [
      {},
      { HOME: "" },
      { HOME: folder.path, DENO_DIR: "", XDG_CACHE_HOME: "" },
      { XDG_CACHE_HOME: folder.path },
      { DENO_DIR: `${folder.path}/cache` },
    ];
    for (const env of environments) {
      const options = { clearEnv: true, env };
      const { denoDir } = await printed(["info", "--json"], options) as { denoDir: string };
      const found = await printed([...LAUNCHING, JSON.stringify(launch)], options);
      assertEquals(found, { denoDir }, JSON.stringify(env));
    }
  },
});

/** Whether this system has a file. */
function isThere(path: string): boolean {
  try {
    Deno.statSync(path);
    return true;
  } catch {
    return false;
  }
}

Deno.test({
  name: "functions write below a folder, and change no attribute of what a link there leads to",
  ignore: !isLinux,
  async fn() {
    await using sandbox = await Sandbox.open({ "outside.txt": "x" }, (folder) => ({
      writeRoots: [`${folder}/data`],
    }));
    const { folder } = sandbox;
    const outside = `${folder}/outside.txt`;
    await link(outside, `${folder}/data/link`);
    const before = await Deno.stat(outside);
    const at = JSON.stringify(`${folder}/data`);
    const attempts = [
      `Deno.chmodSync(${at} + "/link", 0o777)`,
      `Deno.utimeSync(${at} + "/link", 7, 7)`,
      `Deno.chownSync(${at} + "/link", 65534, 65534)`,
      `import("node:fs").then((fs) => fs.lchownSync(${at} + "/link", 65534, 65534))`,
      `import("node:fs").then((fs) => fs.truncateSync(${at} + "/link", 0))`,
    ];
    const writing = `(() => {
      const at = ${at};
      Deno.mkdirSync(at + "/made/deep", { recursive: true });
      Deno.writeTextFileSync(at + "/made/one", "1");
      Deno.renameSync(at + "/made/one", at + "/made/deep/two");
      const file = Deno.openSync(at + "/made/deep/two", { read: true, write: true });
      file.truncateSync(0);
      file.writeSync(new TextEncoder().encode("22"));
      file.syncSync();
      file.close();
      Deno.openSync(at + "/made/private", { write: true, create: true, mode: 0o600 }).close();
      const temporary = Deno.makeTempFileSync({ dir: at });
      Deno.removeSync(temporary);
      return Deno.readTextFileSync(at + "/made/deep/two");
    })()`;
    const came = await sandbox.evaluateAll([...attempts, writing]);
    for (const [i, attempt] of attempts.entries()) assert("code" in came[i]!, attempt);
    assertEquals(came.at(-1), { value: "22" });
    const after = await Deno.stat(outside);
    assertEquals(
      [after.mode, after.mtime, after.uid, after.gid, after.size],
      [before.mode, before.mtime, before.uid, before.gid, before.size],
    );
  },
});

Deno.test({
  name: "a worker whose kernel lacks guards warns once, and still runs functions",
  ignore: !isLinux,
  async fn() {
    const program = fileURLToPath(import.meta.resolve("./fixture_without_guards.ts"));
    const { stdout, stderr } = await new Deno.Command("deno", {
      args: ["run", "--quiet", "-P=cluster", "--no-check", "--cached-only", program],
      env: { NO_COLOR: "1" },
    }).output();
    const log = new TextDecoder().decode(stderr);
    assertEquals(new TextDecoder().decode(stdout), "0\n1\n4\n".repeat(3), log);
    for (const missing of ["This system has no Landlock", "takes no filter of system calls"]) {
      assertEquals(log.split(missing).length - 1, 1, log);
    }
  },
});

/** Outcomes of linux/seccomp.h. */
const ALLOWED = 0x7fff_0000;
const NOT_PERMITTED = 0x0005_0001;
const NO_SUCH_CALL = 0x0005_0026;
const AUDIT = { x86_64: 0xc000_003e, aarch64: 0xc000_00b7 } as const;

Deno.test("callFilter decides by number and arguments, on both architectures", () => {
  const pid = 4_711;
  const password = [0xdead_beef, 0x1234_5678] as const;
  const threads = 0x3d_0f00n; // as the C library starts one
  const own = BigInt(pid);
  const cases: [name: string, numbers: [number, number], args: bigint[], outcome: number][] = [
    ["read", [0, 63], [], ALLOWED],
    ["openat", [257, 56], [], ALLOWED],
    ["mmap", [9, 222], [], ALLOWED],
    ["futex", [202, 98], [], ALLOWED],
    ["getrandom", [318, 278], [], ALLOWED],
    ["renameat2", [316, 276], [], ALLOWED],
    ["openat O_RDONLY | O_CLOEXEC", [257, 56], [0n, 0n, 0o2000000n], ALLOWED],
    ["openat O_WRONLY | O_TRUNC", [257, 56], [0n, 0n, 0o1001n], ALLOWED],
    ["openat O_RDWR | O_TRUNC", [257, 56], [0n, 0n, 0o1002n], ALLOWED],
    ["openat O_RDONLY | O_CREAT | O_TRUNC", [257, 56], [0n, 0n, 0o1100n], NOT_PERMITTED],
    ["openat O_ACCMODE | O_TRUNC", [257, 56], [0n, 0n, 0o1003n], NOT_PERMITTED],
    ["openat2", [437, 437], [], NO_SUCH_CALL],
    ["mmap of a shared file", [9, 222], [0n, 1n, 3n, 1n], ALLOWED],
    ["mmap of private memory", [9, 222], [0n, 1n, 3n, 0x22n], ALLOWED],
    ["mmap of shared memory", [9, 222], [0n, 1n, 3n, 0x21n], NOT_PERMITTED],
    ["mmap of shared memory, validated", [9, 222], [0n, 1n, 3n, 0x4023n], NOT_PERMITTED],
    ["memfd_create", [319, 279], [], NOT_PERMITTED],
    ["memfd_secret", [447, 447], [], NOT_PERMITTED],
    ["fcntl F_DUPFD_CLOEXEC", [72, 25], [1n, 1030n], ALLOWED],
    ["fcntl F_SETFL", [72, 25], [1n, 4n], ALLOWED],
    ["fcntl F_SETOWN", [72, 25], [1n, 8n], NOT_PERMITTED],
    ["fcntl F_SETSIG", [72, 25], [1n, 10n], NOT_PERMITTED],
    ["fcntl F_SETOWN_EX", [72, 25], [1n, 15n], NOT_PERMITTED],
    ["socketpair of a stream", [53, 199], [1n, 0o2004001n], ALLOWED],
    ["socketpair of datagrams", [53, 199], [1n, 0o2004002n], NOT_PERMITTED],
    ["socketpair of packets", [53, 199], [1n, 5n], NOT_PERMITTED],
    ["socketpair of TIPC", [53, 199], [30n, 1n], NOT_PERMITTED],
    ["ftruncate", [77, 46], [], ALLOWED],
    ["fchmod", [91, 52], [], NOT_PERMITTED],
    ["fchmodat2", [452, 452], [], NOT_PERMITTED],
    ["utimensat", [280, 88], [], NOT_PERMITTED],
    ["execve", [59, 221], [], NOT_PERMITTED],
    ["io_uring_setup", [425, 425], [], NOT_PERMITTED],
    ["file_setattr", [469, 469], [], NOT_PERMITTED],
    ["a call of the future", [470, 470], [], NO_SUCH_CALL],
    ["the x32 interface", [0x4000_0000, 0x4000_0000], [], NO_SUCH_CALL],
    ["clone3", [435, 435], [], NO_SUCH_CALL],
    ["clone of a thread", [56, 220], [threads], ALLOWED],
    ["clone of a process", [56, 220], [17n], NOT_PERMITTED],
    ["clone of a thread with users", [56, 220], [threads | 0x1000_0000n], NOT_PERMITTED],
    ["kill itself", [62, 129], [own, 9n], ALLOWED],
    ["kill another", [62, 129], [own + 1n, 9n], NOT_PERMITTED],
    ["kill its group", [62, 129], [0n, 9n], NOT_PERMITTED],
    ["tgkill itself", [234, 131], [own, own, 6n], ALLOWED],
    ["tgkill another", [234, 131], [1n, 1n, 6n], NOT_PERMITTED],
    ["prlimit64 of itself", [302, 261], [0n], ALLOWED],
    ["prlimit64 of another", [302, 261], [1n], NOT_PERMITTED],
    ["ioctl FIONBIO", [16, 29], [5n, 0x5421n], ALLOWED],
    ["ioctl FIOSETOWN", [16, 29], [5n, 0x8901n], NOT_PERMITTED],
    ["ioctl FS_IOC_SETVERSION", [16, 29], [5n, 0x4008_7602n], NOT_PERMITTED],
    ["ioctl FS_IOC_ENABLE_VERITY", [16, 29], [5n, 0x4080_6685n], NOT_PERMITTED],
    ["ioctl TIOCSTI", [16, 29], [0n, 0x5412n], NOT_PERMITTED],
    // The kernel reads only the lower half of such an argument.
    ["ioctl TIOCSTI and more", [16, 29], [0n, 0x1_0000_5412n], NOT_PERMITTED],
    ["prctl PR_SET_NAME", [157, 167], [15n], ALLOWED],
    ["prctl PR_SET_PDEATHSIG", [157, 167], [1n], NOT_PERMITTED],
    ["execveat of the launcher", [322, 281], [
      0xdead_beef_ffff_ff9cn,
      0n,
      0n,
      0n,
      0x1234_5678_0000_0000n,
    ], ALLOWED],
    ["execveat with half of it", [322, 281], [0xdead_beef_ffff_ff9cn], NOT_PERMITTED],
    ["execveat", [322, 281], [0xffff_ff9cn], NOT_PERMITTED],
    ["socket AF_INET", [41, 198], [2n, 1n, 0n], NOT_PERMITTED],
  ];
  for (const [at, architecture] of (["x86_64", "aarch64"] as const).entries()) {
    const options: CallFilterOptions = { architecture, pid, allowsNetwork: false, password };
    const filter = callFilter(options);
    const withNetwork = callFilter({ ...options, allowsNetwork: true });
    const audit = AUDIT[architecture];
    const outcomeOf = (program: typeof filter, number: number, args: bigint[] = []) =>
      filtered(program, { number, architecture: audit, args });
    for (const [name, numbers, args, outcome] of cases) {
      assertEquals(outcomeOf(filter, numbers[at]!, args), outcome, `${architecture}: ${name}`);
    }
    if (architecture === "x86_64") {
      assertEquals(outcomeOf(filter, 2, [0n, 0o1000n]), NOT_PERMITTED); // open
      assertEquals(outcomeOf(filter, 2, [0n, 0o1001n]), ALLOWED);
    }
    const socket = [41, 198][at]!;
    assertEquals(outcomeOf(withNetwork, socket, [2n, 1n, 0n]), ALLOWED);
    assertEquals(outcomeOf(withNetwork, socket, [1n, 1n, 0n]), NOT_PERMITTED);
    assertEquals(outcomeOf(withNetwork, socket, [16n, 3n, 0n]), ALLOWED);
    assertEquals(outcomeOf(withNetwork, socket, [16n, 3n, 9n]), NOT_PERMITTED);
    const foreign = AUDIT[architecture === "x86_64" ? "aarch64" : "x86_64"];
    assertEquals(filtered(filter, { number: 0, architecture: foreign }), NOT_PERMITTED);
  }
});
