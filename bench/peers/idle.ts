/** Waits until a side's processes have refilled their buffers. */

/** How far apart the CPU time is read, in ms. */
const INTERVAL_MS = 100;
/** How often the CPU time is read at most. Processes may poll for ever. */
const READS_MAX = 50;

/** Waits until a process and its descendants use almost no CPU, or for five seconds. */
export async function untilIdle(pid: number): Promise<boolean> {
  return await untilSteady(
    async () => cpuTicks(await processStats(), pid),
    () => new Promise((resolve) => setTimeout(resolve, INTERVAL_MS)),
  );
}

/** Reads until a value grows by at most one. Resolves to whether it did within `READS_MAX` reads. */
export async function untilSteady(
  read: () => Promise<number>,
  pause: () => Promise<void>,
): Promise<boolean> {
  let last = await read();
  for (let reads = 1; reads < READS_MAX; reads++) {
    await pause();
    const value = await read();
    if (value - last <= 1) return true;
    last = value;
  }
  return false;
}

/**
 * Adds up the CPU time of a process and its descendants, in the kernel's ticks of 10 ms.
 * @param stats Lines of `/proc/PID/stat`; none on a system without them.
 */
export function cpuTicks(stats: string, pid: number): number {
  const children = new Map<number, number[]>();
  const ticks = new Map<number, number>();
  for (const line of stats.split("\n")) {
    // The program's name, in parentheses, may contain spaces.
    const [, parent, ...fields] = line.slice(line.lastIndexOf(")") + 2).split(" ").map(Number);
    const child = parseInt(line);
    ticks.set(child, fields[9]! + fields[10]!);
    children.set(parent!, [...children.get(parent!) ?? [], child]);
  }
  const sum = (one: number): number =>
    (children.get(one) ?? []).reduce((total, child) => total + sum(child), ticks.get(one) ?? 0);
  return sum(pid);
}

/** Deno reads /proc only with all permissions. Processes may end while they are listed. */
async function processStats(): Promise<string> {
  const { stdout } = await new Deno.Command("sh", {
    args: ["-c", "cat /proc/[0-9]*/stat"],
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout);
}
