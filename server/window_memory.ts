/** The default memory of sharing windows on this machine. */

/** Limit of all windows of the process together, in bytes. */
const WINDOW_BYTES_MAX = 10 * 2 ** 30;
/** Limit of all windows of the process together, as a share of the machine's memory. */
const MEMORY_SHARE = 1 / 4;
/** The default, in bytes, without permission to read the size of the memory. */
const WINDOW_BYTES_UNKNOWN = 2 ** 30;
/** The files with a container's memory limit on Linux: cgroup v2, then v1. */
const CONTAINER_LIMITS = [
  "/sys/fs/cgroup/memory.max",
  "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/**
 * The default memory of one worker's windows: 10 GiB or a quarter of the memory, whichever is less,
 * divided among the workers of this process; 1 GiB instead without permission to read the size of
 * the memory (`--allow-sys=systemMemoryInfo`).
 * @param workers The number of workers in this process.
 */
export function defaultWindowBytes(workers = 1): number {
  const memoryBytes = memoryOfMachine();
  const bytes = memoryBytes === undefined
    ? WINDOW_BYTES_UNKNOWN
    : Math.min(WINDOW_BYTES_MAX, MEMORY_SHARE * memoryBytes);
  return Math.floor(bytes / Math.max(1, workers));
}

/** The machine's memory, or the part that this process may use, in bytes. */
function memoryOfMachine(): number | undefined {
  if (!isGranted({ name: "sys", kind: "systemMemoryInfo" })) return undefined;
  return Math.min(Deno.systemMemoryInfo().total, ...CONTAINER_LIMITS.flatMap(limitIn));
}

function limitIn(path: string): number[] {
  if (!isGranted({ name: "read", path })) return [];
  try {
    // If there is no limit, v2 has "max", and v1 an impossibly large number.
    const limit = Number(Deno.readTextFileSync(path));
    return limit > 0 ? [limit] : [];
  } catch {
    return [];
  }
}

/** Whether the permission is granted without a prompt. */
function isGranted(permission: Deno.PermissionDescriptor): boolean {
  return Deno.permissions.querySync(permission).state === "granted";
}
