/**
 * Starts a confined process on Linux: sets the kernel's limits for itself, and then executes (`exec`)
 * the program, which inherits the limits. The launcher runs no user code. Deno checks a path as
 * written and then follows its links, but Landlock checks the target. A filter of system calls denies
 * what Landlock does not cover, such as signals and changes of files' modes.
 */
import { callFilter, type ExecPassword } from "./call_filter.ts";
import { KernelCalls } from "./kernel_calls.ts";
import type { KernelGuards } from "./kernel_guards.ts";
import { restrictFiles } from "./landlock.ts";

/** The launcher's only argument, as JSON. */
export interface Launch {
  /** The program to execute, and its arguments. The launcher appends {@linkcode KernelGuards} as JSON. */
  readonly command: readonly string[];
  /** Files and folders that the program may read. */
  readonly readable: readonly string[];
  /** Files and folders that the program may read and change. */
  readonly writable: readonly string[];
  /** Whether the program may open sockets to any other host. Deno's permissions limit the hosts. */
  readonly allowsNetwork: boolean;
  /** Limit of the private memory of the process, in bytes. */
  readonly memoryBytesMax: number;
  /** Limit of a file that the program writes, in bytes. Default: none. */
  readonly fileBytesMax?: number;
  readonly openFilesMax: number;
}

/** The paths of Deno's downloads and compiled code, but not of data that other programs store there. */
function cachedByDeno(folder: string): string[] {
  const parts = ["deps", "gen", "npm", "registries", "remote"];
  const databases = ["dep_analysis_cache_v2", "node_analysis_cache_v2", "v8_code_cache_v2"]
    .flatMap((name) => ["", "-shm", "-wal"].map((ending) => `${name}${ending}`));
  return [...parts, ...databases].map((name) => `${folder}/${name}`);
}

/** Deno's cache folder, found as Deno finds it; undefined if this user has no home folder. */
async function denoDir(): Promise<string | undefined> {
  const explicit = Deno.env.get("DENO_DIR");
  if (explicit) return explicit;
  const cache = Deno.env.get("XDG_CACHE_HOME");
  if (cache) return `${cache}/deno`;
  const home = Deno.env.get("HOME") || await listedHome();
  return home === null ? undefined : `${home}/.cache/deno`;
}

/** This user's home folder in the system's list of users, or null. */
async function listedHome(): Promise<string | null> {
  // Imported only here, because any module of node makes each launch slower.
  const { homedir } = await import("node:os");
  return homedir();
}

if (import.meta.main) {
  const launch: Launch = JSON.parse(Deno.args[0]!);
  const kernel = new KernelCalls();
  kernel.limitMemory(launch.memoryBytesMax);
  kernel.limitOpenFiles(launch.openFilesMax);
  if (launch.fileBytesMax !== undefined) kernel.limitFileSize(launch.fileBytesMax);
  kernel.disableCoreFiles();
  kernel.setNoNewPrivileges();
  const cache = await denoDir();
  const cached = cache === undefined ? [] : cachedByDeno(cache);
  const readable = [...launch.readable, ...cached];
  const landlock = restrictFiles(kernel, { ...launch, readable });
  kernel.dropCapabilities();
  kernel.dieWithParent();
  const [first, last] = crypto.getRandomValues(new Uint32Array(2));
  const password: ExecPassword = [first!, last!];
  const { pid, build: { arch: architecture } } = Deno;
  const { allowsNetwork } = launch;
  const filter = callFilter({ architecture, pid, allowsNetwork, password });
  const guards: KernelGuards = { landlock, callFilter: kernel.filterCalls(filter) };
  // The program could not find the folder itself: it may not read the system's list of users.
  const variables = cache === undefined ? [] : [`DENO_DIR=${cache}`];
  kernel.exec([...launch.command, JSON.stringify(guards)], variables, password);
}
