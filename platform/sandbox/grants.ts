/** The permissions that the operator of a worker grants to user functions. */
import paths, { type PlatformPath, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { optionsOf, TIMER_MS_MAX } from "../../data/check.ts";
import { PYTHON } from "../python/python_pool.ts";
import { requireLocalName } from "../storage/files.ts";

/** The permissions and limits of user functions. All other permissions are denied. */
export interface SandboxOptions {
  /**
   * Folders and URL prefixes (`s3://bucket/prefix`) from which functions may read data and modules.
   * Default: the current folder.
   */
  readonly dataRoots?: readonly string[];
  /** Folders in which pipelines may create and read files, as `cache(path)` does. Default: none. */
  readonly writeRoots?: readonly string[];
  /**
   * Hosts (`example.com`, `10.0.0.7:80`, `10.0.0.0/8`) that functions may connect to. Pipelines may
   * read another service if the hosts of its dispatcher and its workers are listed. Default: none.
   */
  readonly net?: readonly string[];
  /** Hosts, but no ranges, from which functions may import modules over HTTP. Default: none. */
  readonly imports?: readonly string[];
  /**
   * Folders of Python files whose functions pipelines may call. Nothing confines these functions,
   * and every pipeline may call each of them with any arguments. Default: none.
   */
  readonly pythonRoots?: readonly string[];
  /**
   * Limit of one task's JavaScript values, in bytes, not counting tensors; at least 64 MiB. Default
   * 2 GiB, or `memoryBytesMax` if that is less.
   */
  readonly heapBytesMax?: number;
  /**
   * Limit of the memory of one task's process, in bytes: the program (about 100 MB), JavaScript values,
   * tensors and buffers; at least 1 GiB. Only Linux enforces it. Default 4 GiB.
   */
  readonly memoryBytesMax?: number;
  /**
   * How long a function may run without yielding to the event loop, in ms; at most 2³¹ - 1. Default two
   * minutes.
   */
  readonly stallTimeoutMs?: number;
}

/** A folder with the path that was given and its real path. */
export interface Folder {
  readonly path: string;
  readonly realPath: string;
}

/** The checked and complete {@linkcode SandboxOptions}, as plain data. */
export interface SandboxGrants {
  /** Folders that may be read, including all that may be written. */
  readonly readable: readonly Folder[];
  readonly writable: readonly Folder[];
  /** URL prefixes of far files. */
  readonly far: readonly string[];
  readonly net: readonly string[];
  readonly imports: readonly string[];
  /** Folders of Python files. */
  readonly python: readonly Folder[];
  readonly heapBytesMax: number;
  readonly memoryBytesMax: number;
  readonly stallTimeoutMs: number;
}

/** The grants that a runner uses through its host: far files and services. */
export type ReachedByHost = Pick<SandboxGrants, "far" | "net">;

const HEAP_BYTES_MAX = 2 * 2 ** 30;
/** The program itself needs this much. */
const HEAP_BYTES_MIN = 64 * 2 ** 20;
const MEMORY_BYTES_MAX = 4 * 2 ** 30;
/** V8 reserves half of this for generated code. */
const MEMORY_BYTES_MIN = 2 ** 30;
const STALL_TIMEOUT_MS = 120_000;

const checkNames = optionsOf<SandboxOptions>("sandbox", {
  dataRoots: true,
  writeRoots: true,
  net: true,
  imports: true,
  pythonRoots: true,
  heapBytesMax: true,
  memoryBytesMax: true,
  stallTimeoutMs: true,
});

/** A URL with another scheme than `file:`. */
const FAR_URL = /^(?!file:)[a-z][a-z0-9+.-]+:\/\//i;

/** Whether a path is in storage that a confined runner can read only through its host. */
export function isFar(path: string): boolean {
  return FAR_URL.test(path);
}

/**
 * Whether an absolute path is the folder, or below it. The folder may be the root.
 *
 * @param system The paths of which system. Default: this one.
 */
export function isWithin(path: string, folder: string, system: PlatformPath = paths): boolean {
  const way = system.relative(folder, path);
  return way !== ".." && !way.startsWith(`..${system.sep}`) && !system.isAbsolute(way);
}

/**
 * Checks the names of options, and that lists are lists: a misspelt `dataRoots` would grant the default.
 * @throws {LeatError} `invalid_argument`.
 */
export function checkSandboxOptions(options: SandboxOptions): void {
  const { dataRoots, writeRoots, net, imports, pythonRoots } = checkNames(options);
  const lists = { dataRoots, writeRoots, net, imports, pythonRoots };
  for (const [name, list] of Object.entries(lists)) requireTexts(name, list);
}

/**
 * Checks options, and returns the grants for them.
 * @throws {LeatError} `not_found` for a missing folder; `invalid_argument` for a path that is no
 * folder, and for unknown names and invalid lists, numbers and hosts; `permission_denied` for a
 * permission that this program cannot grant because it does not have it.
 */
export function sandboxGrants(options: SandboxOptions = {}): SandboxGrants {
  checkSandboxOptions(options);
  const { dataRoots = [Deno.cwd()], writeRoots = [], net = [], imports = [] } = options;
  const python = (options.pythonRoots ?? []).map(folderOf);
  const { memoryBytesMax = MEMORY_BYTES_MAX, stallTimeoutMs = STALL_TIMEOUT_MS } = options;
  const { heapBytesMax = Math.min(HEAP_BYTES_MAX, memoryBytesMax) } = options;
  requireAtLeast("heapBytesMax", heapBytesMax, HEAP_BYTES_MIN);
  requireAtLeast("memoryBytesMax", memoryBytesMax, MEMORY_BYTES_MIN);
  requireAtLeast("stallTimeoutMs", stallTimeoutMs, 1, TIMER_MS_MAX);
  const writable = writeRoots.map(folderOf);
  const readable = [...dataRoots.filter((root) => !isFar(root)).map(folderOf), ...writable];
  const hosts = imports.map(hostOf);
  for (const host of net) if (!isRange(host)) requireHost(host);
  // The host of a module is compared with names: no range would grant anything.
  for (const host of hosts) requireHost(host);
  for (const { realPath } of python) requireUnwritten(realPath, writable);
  for (const { path } of readable) requireOwn({ name: "read", path }, "--allow-read", path);
  for (const { path } of writable) requireOwn({ name: "write", path }, "--allow-write", path);
  for (const host of net) requireOwn({ name: "net", host }, "--allow-net", host);
  for (const host of hosts) {
    requireOwn({ name: "import", host }, "--allow-import", host);
    requireOwn({ name: "net", host }, "--allow-net", host); // this program fetches the modules
  }
  if (python.length > 0) requireOwn({ name: "run", command: PYTHON }, "--allow-run", PYTHON);
  const far = dataRoots.filter(isFar);
  const limits = { heapBytesMax, memoryBytesMax, stallTimeoutMs };
  return { readable, writable, far, net, imports: hosts, python, ...limits };
}

/** The grants for an option: the defaults for `true`; `undefined` for `false`, which confines nothing. */
export function grantsOf(confine: boolean | SandboxOptions = false): SandboxGrants | undefined {
  return confine === false ? undefined : sandboxGrants(confine === true ? {} : confine);
}

/** Deno's flags that give a runner exactly the grants. */
export function permissionFlags({ readable, writable, net }: SandboxGrants): string[] {
  return [
    ...flagsOf("read", pathsOf(readable)),
    ...flagsOf("write", pathsOf(writable)),
    ...flagsOf("net", net),
    // The worker fetches remote modules, and checks the host of each redirect.
    "--deny-import",
  ];
}

function flagsOf(kind: string, values: readonly string[]): string[] {
  return values.map((value) => `--allow-${kind}=${value}`);
}

function pathsOf(folders: readonly Folder[]): string[] {
  return [...new Set(folders.flatMap(({ path, realPath }) => [path, realPath]))];
}

/**
 * The absolute path of a root that is a path or a `file:` URL.
 * @throws {LeatError} `invalid_argument` for a URL of another host.
 */
export function rootPath(root: string): string {
  if (!root.startsWith("file:")) {
    requireLocalName(root);
    return resolve(root);
  }
  try {
    return fileURLToPath(root);
  } catch (cause) {
    throw new LeatError("invalid_argument", `${root} names no folder of this host`, { cause });
  }
}

function folderOf(root: string): Folder {
  const path = rootPath(root);
  try {
    const realPath = Deno.realPathSync(path);
    if (Deno.statSync(realPath).isDirectory) return withoutComma({ path, realPath });
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    throw new LeatError(code, `The folder ${path} cannot be granted: ${message}`, { cause });
  }
  throw new LeatError("invalid_argument", `${path} cannot be granted, since it is no folder`);
}

/** Refuses a path with a comma, because Deno's flags separate paths by commas. */
function withoutComma(folder: Folder): Folder {
  if (!folder.path.includes(",") && !folder.realPath.includes(",")) return folder;
  throw new LeatError(
    "invalid_argument",
    `The folder ${folder.path} cannot be granted: its path has a comma, with which Deno separates ` +
      "folders. Rename the folder, or grant a folder above it",
  );
}

/** Refuses Python folders that pipelines may write, because Python functions are not confined. */
function requireUnwritten(root: string, writable: readonly Folder[]): void {
  const folder = writable.find(({ realPath }) =>
    isWithin(root, realPath) || isWithin(realPath, root)
  );
  if (folder === undefined) return;
  throw new LeatError(
    "invalid_argument",
    `Functions of Python files in ${root} cannot be granted, since pipelines may write to ${folder.path}`,
  );
}

/** The host and port of a URL. Any other text is already a host, and stays the same. */
export function hostOf(source: string): string {
  if (!source.includes("://")) return source;
  const url = URL.parse(source);
  if (url === null) {
    throw new LeatError(
      "invalid_argument",
      `${shownPath(source)} cannot be granted: it is no valid URL`,
    );
  }
  const { host, protocol, port } = url;
  return port === "" ? `${host}:${protocol === "http:" ? 80 : 443}` : host;
}

/** Whether a host is a range of addresses. Deno has ranges of IPv4 alone. */
function isRange(host: string): boolean {
  const [, address, bits] = /^([\d.]+)\/(\d+)$/.exec(host) ?? [];
  return address !== undefined && URL.parse(`http://${address}`)?.hostname === address &&
    Number(bits) <= 32;
}

/** Accepts a name or an address, with or without a port. */
function requireHost(host: string): void {
  if (/^(\[[\da-f:.]+\]|[^\s/,:[\]]+)(:\d+)?$/i.test(host)) return;
  throw new LeatError(
    "invalid_argument",
    `User functions cannot be granted "${
      shownPath(host)
    }", which is no host: write HOST or HOST:PORT, an address of IPv6 in brackets; only net also takes ` +
      "ranges, of IPv4 (10.0.0.0/8)",
  );
}

function requireOwn(
  descriptor: Deno.PermissionDescriptor,
  flag: string,
  what: string,
): void {
  if (Deno.permissions.querySync(descriptor).state === "granted") return;
  throw new LeatError(
    "permission_denied",
    `User functions cannot be granted ${descriptor.name} access to ${what}, which this program does ` +
      `not have itself: run it with ${flag}=${what}`,
  );
}

/** Refuses anything but a list of texts. Shows no value, because a URL may have a password. */
function requireTexts(name: string, list: unknown = []): void {
  if (!Array.isArray(list)) {
    throw new LeatError(
      "invalid_argument",
      `sandbox.${name} must be an array of non-empty strings, not one value of type ${typeof list}`,
    );
  }
  const index = list.findIndex((text) => typeof text !== "string" || text === "");
  if (index < 0) return;
  throw new LeatError(
    "invalid_argument",
    `sandbox.${name}[${index}] must be a non-empty string, not ${
      list[index] === "" ? "an empty one" : `of type ${typeof list[index]}`
    }`,
  );
}

function requireAtLeast(name: string, value: number, least: number, most = Infinity): void {
  if (Number.isFinite(value) && value >= least && value <= most) return;
  const bound = most === Infinity ? "" : ` and at most ${most}`;
  throw new LeatError(
    "invalid_argument",
    `sandbox.${name} must be at least ${least}${bound}, not ${value}`,
  );
}
