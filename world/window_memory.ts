/**
 * How much of this machine's memory sharing windows take unless told.
 *
 * @module
 */

/** No more than this, in bytes, however much memory there is… */
const WINDOW_BYTES_MAX = 10 * 2 ** 30;
/** …and no more than this part of it. */
const MEMORY_SHARE = 1 / 4;
/** Where the program may not ask how much memory there is, in bytes. */
const WINDOW_BYTES_UNKNOWN = 2 ** 30;
/** Where Linux says what a container may use. */
const CONTAINER_LIMITS = [
  "/sys/fs/cgroup/memory.max",
  "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/**
 * What the windows of one worker may hold: 10 GiB or a quarter of the memory, whichever is less,
 * divided among the workers of this process; 1 GiB instead where the program has no permission to ask
 * (`--allow-sys=systemMemoryInfo`).
 *
 * @param workers How many there are in this process.
 *
 * @example
 * ```ts
 * import { defaultWindowBytes } from "./window_memory.ts";
 *
 * console.log(defaultWindowBytes(2) <= 5 * 2 ** 30); // true
 * ```
 */
export function defaultWindowBytes(workers = 1): number {
  const memoryBytes = memoryOfMachine();
  const bytes = memoryBytes === undefined
    ? WINDOW_BYTES_UNKNOWN
    : Math.min(WINDOW_BYTES_MAX, MEMORY_SHARE * memoryBytes);
  return Math.floor(bytes / Math.max(1, workers));
}

/** What the machine has, or what of it this process may use, in bytes. */
function memoryOfMachine(): number | undefined {
  if (!isGranted({ name: "sys", kind: "systemMemoryInfo" })) return undefined;
  return Math.min(Deno.systemMemoryInfo().total, ...CONTAINER_LIMITS.flatMap(limitIn));
}

function limitIn(path: string): number[] {
  if (!isGranted({ name: "read", path })) return [];
  try {
    // No limit is written as "max", or as a number no memory has.
    const limit = Number(Deno.readTextFileSync(path));
    return limit > 0 ? [limit] : [];
  } catch {
    return [];
  }
}

/** Whether it may be done without asking anybody. */
function isGranted(permission: Deno.PermissionDescriptor): boolean {
  return Deno.permissions.querySync(permission).state === "granted";
}
