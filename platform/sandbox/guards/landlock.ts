/** Restricts a process with Landlock (landlock(7)) to named files. The kernel also checks links. */
import type { KernelCalls } from "./kernel_calls.ts";

/** The files and the network that a process may access. */
interface Access {
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  readonly allowsNetwork: boolean;
}

const EXECUTE = 1n << 0n;
const WRITE_FILE = 1n << 1n;
const READ_FILE = 1n << 2n;
const READ_DIR = 1n << 3n;
const TRUNCATE = 1n << 14n;
const IOCTL_DEV = 1n << 15n;
/** The accesses that apply to files. All others apply only to folders. */
const OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const READ = READ_FILE | READ_DIR;

const BIND_TCP = 1n << 0n;
const CONNECT_TCP = 1n << 1n;
const SCOPE_ABSTRACT_SOCKETS = 1n << 0n;
const SCOPE_SIGNALS = 1n << 1n;

/** The accesses that a version of Landlock can deny. */
function knownAccesses(version: number): bigint {
  const bits = version >= 5 ? 16 : version >= 3 ? 15 : version >= 2 ? 14 : 13;
  return (1n << BigInt(bits)) - 1n;
}

/** The creation of special files and links: a link could lead to what Landlock does not cover. */
const MAKE_SPECIAL = 1n << 6n | 1n << 9n | 1n << 10n | 1n << 11n | 1n << 12n;

/** Files that Deno and the C library read to reach other hosts. */
const NETWORK_FILES = [
  ...["/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/openssl.cnf", "/etc/pki/tls/certs"],
  ...["/etc/pki/ca-trust", "/etc/ca-certificates", "/usr/share/ca-certificates"],
];
/** Files that Deno and the C library read while they run. */
const SYSTEM_FILES = [
  ...["/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo"],
  // Deno reads these before it checks a permission.
  ...["/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf"],
  ...["/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys"],
  ...["/sys/fs/cgroup", "/sys/devices/system/cpu", "/sys/kernel/mm"],
  ...["/dev/zero", "/dev/urandom", "/dev/random"],
];

/** Restricts this process permanently. Returns the version of Landlock, or 0 if the kernel has none. */
export function restrictFiles(kernel: KernelCalls, granted: Access): number {
  const version = kernel.landlockVersion();
  if (version === 0) return 0;
  const known = knownAccesses(version);
  const ruleset = kernel.createRuleset(attributesOf(version, known, granted.allowsNetwork));
  const allow = (path: string, accesses: bigint) => {
    // A rule for a file must not contain accesses of folders.
    if (!kernel.allowBeneath(ruleset, path, accesses & known)) {
      kernel.allowBeneath(ruleset, path, accesses & known & OF_FILES);
    }
  };
  for (const path of [...SYSTEM_FILES, ...granted.readable]) allow(path, READ);
  if (granted.allowsNetwork) { for (const path of NETWORK_FILES) allow(path, READ); }
  for (const path of granted.writable) allow(path, known & ~EXECUTE & ~MAKE_SPECIAL);
  allow("/dev/null", READ_FILE | WRITE_FILE);
  for (const file of kernel.mappedFiles()) {
    allow(file, READ | EXECUTE);
    // Libraries that are loaded later are next to those already loaded.
    if (/\.so(\.|$)/.test(file)) {
      // Without dirname(), because any module of node makes each launch slower.
      allow(file.slice(0, file.lastIndexOf("/") + 1), READ | EXECUTE);
    }
  }
  kernel.restrictSelf(ruleset);
  return version;
}

function attributesOf(
  version: number,
  known: bigint,
  allowsNetwork: boolean,
): Uint8Array<ArrayBuffer> {
  const tcp = version < 4 || allowsNetwork ? 0n : BIND_TCP | CONNECT_TCP;
  const scopes = version < 6 ? 0n : SCOPE_ABSTRACT_SOCKETS | SCOPE_SIGNALS;
  const fields = version < 4 ? [known] : version < 6 ? [known, tcp] : [known, tcp, scopes];
  return new Uint8Array(new BigUint64Array(fields).buffer);
}
