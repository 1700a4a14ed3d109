/**
 * Samples the resources of each process of a cluster.
 *
 * Each process reports its RSS and V8's heap itself ({@linkcode PROBE_FLAGS}). Threads and file handles
 * are read from `/proc`, if there is one. Deno lets a program read there only with all permissions, so
 * `cat` and `ls` do it.
 */
import { outputOf } from "../../platform/process/output_of.ts";
import { memoryNow, type MemoryUse } from "./memory_now.ts";

/** The names of the measures. */
export const MEASURES = ["rss", "heap", "threads", "files"] as const;
export type Measure = (typeof MEASURES)[number];

/** Deno's flags that make a process report its memory. Paths are relative to the repository's root. */
export const PROBE_FLAGS = [
  "--v8-flags=--expose-gc",
  ...["--preload", "./cli/soak/memory_probe.ts"],
] as const;

/** One sample of one process. Unknown measures are absent. */
export interface Sample extends Partial<Readonly<Record<Measure, number>>> {
  readonly seconds: number;
}

/** One incarnation of a process, from its start to its end. */
interface Process {
  readonly name: string;
  readonly pid: number;
}

const BYTES_PER_MIB = 2 ** 20;

/** Returns the unique name of an incarnation. */
function incarnationOf({ name, pid }: Process): string {
  return `${name} (${pid})`;
}

/** Returns the process's name from the unique name of an incarnation. */
export function nameOf(incarnation: string): string {
  return incarnation.replace(/ \(\d+\)$/, "");
}

/** Samples of processes over time. */
export class Samples {
  /** The samples, by the unique name of the incarnation. */
  readonly series = new Map<string, Sample[]>();
  #startedMs = performance.now();
  /** The last memory report of each process, by its id: a name passes to the next incarnation. */
  readonly #memory = new Map<number, MemoryUse>();

  get seconds(): number {
    return (performance.now() - this.#startedMs) / 1_000;
  }

  /** Starts the clock. */
  start(): void {
    this.#startedMs = performance.now();
  }

  /** Receives a line that a process has printed, and records a memory report. */
  received(line: string): void {
    const [, json] = /^memory (\{.*\})$/.exec(line) ?? [];
    if (json !== undefined) this.#report(JSON.parse(json));
  }

  /** Samples these processes, and this one. */
  async take(processes: readonly Process[]): Promise<void> {
    const own = { name: "readers", pid: Deno.pid };
    const all = [...processes, own];
    this.#report(memoryNow());
    const host = await readHost(all.map(({ pid }) => pid));
    const seconds = this.seconds;
    for (const { name, pid } of all) {
      const memory = this.#memory.get(pid);
      const key = incarnationOf({ name, pid });
      this.series.getOrInsert(key, []).push({
        seconds,
        ...(memory === undefined ? {} : {
          rss: memory.rss / BYTES_PER_MIB,
          heap: memory.heapUsed / BYTES_PER_MIB,
        }),
        ...host.get(pid),
      });
    }
  }

  #report(memory: MemoryUse): void {
    this.#memory.set(memory.pid, memory);
  }
}

/** Returns the threads and file handles of processes, by process id, if the host has `/proc`. */
async function readHost(
  pids: readonly number[],
): Promise<Map<number, { readonly threads: number; readonly files: number }>> {
  const found = new Map<number, { threads: number; files: number }>();
  if (Deno.build.os !== "linux") return found;
  const [status, files] = await Promise.all([
    textOf("cat", pids.map((pid) => `/proc/${pid}/status`)),
    textOf("ls", pids.map((pid) => `/proc/${pid}/fd`)),
  ]);
  const filesOf = new Map(
    files.split("\n\n").map((block) => {
      const [head = "", ...handles] = block.trim().split("\n");
      return [Number(/\/proc\/(\d+)\/fd/.exec(head)?.[1]), handles.length];
    }),
  );
  // A process that has just ended is missing, or is a zombie without measures.
  for (const block of status.split(/^(?=Name:)/m)) {
    if (/^State:\s*Z/m.test(block)) continue;
    const pid = Number(/^Pid:\s*(\d+)/m.exec(block)?.[1]);
    const threads = Number(/^Threads:\s*(\d+)/m.exec(block)?.[1]);
    const handles = filesOf.get(pid);
    if (threads > 0 && handles !== undefined) found.set(pid, { threads, files: handles });
  }
  return found;
}

async function textOf(command: string, args: readonly string[]): Promise<string> {
  const { stdout } = await outputOf(command, { args: [...args], stderr: "null" });
  return new TextDecoder().decode(stdout);
}
