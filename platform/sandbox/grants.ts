/**
 * What the operator of a worker grants to user functions.
 *
 * @module
 */
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { LeatError } from "../../core/error.ts";

/** What user functions may touch; everything else is denied to them. */
export interface SandboxOptions {
  /**
   * Where data may be read: folders, and the beginnings of URLs (`s3://bucket/prefix`). Modules of
   * functions are read there, too. Default: the current folder.
   */
  readonly dataRoots?: readonly string[];
  /** Folders in which pipelines may make files, as `cache(path)` does, and read them. Default: none. */
  readonly writeRoots?: readonly string[];
  /**
   * Hosts (`example.com`, `10.0.0.7:80`) that functions may connect to, and pipelines read services
   * from: the dispatcher's and those of its workers. Default: none.
   */
  readonly net?: readonly string[];
  /** Hosts that modules of functions may be imported from over HTTP. Default: none. */
  readonly imports?: readonly string[];
  /** Memory that JavaScript values of one task may take, in bytes; tensors lie outside. Default 2 GiB. */
  readonly heapBytesMax?: number;
  /**
   * Memory that the process of one task may take in all, in bytes: its program (about 100 MB), its
   * JavaScript values, tensors and buffers. Linux keeps this limit. Default 4 GiB.
   */
  readonly memoryBytesMax?: number;
  /** How long a function may run without giving way, in ms. Default two minutes. */
  readonly stallTimeoutMs?: number;
}

/** A folder, as it was named and where it really is: permissions go by the former. */
export interface Folder {
  readonly path: string;
  readonly realPath: string;
}

/** The same as {@linkcode SandboxOptions}, checked and complete; plain data. */
export interface SandboxGrants {
  /** Folders that may be read, those that may be written included. */
  readonly readable: readonly Folder[];
  readonly writable: readonly Folder[];
  /** Beginnings of URLs of far files. */
  readonly far: readonly string[];
  readonly net: readonly string[];
  readonly imports: readonly string[];
  readonly heapBytesMax: number;
  readonly memoryBytesMax: number;
  readonly stallTimeoutMs: number;
}

/** What a runner reaches through its host: far files, and services. */
export type ReachedByHost = Pick<SandboxGrants, "far" | "net">;

const HEAP_BYTES_MAX = 2 * 2 ** 30;
/** Less does not hold the program itself. */
const HEAP_BYTES_MIN = 64 * 2 ** 20;
const MEMORY_BYTES_MAX = 4 * 2 ** 30;
/** The engine reserves half of it for generated code. */
const MEMORY_BYTES_MIN = 2 ** 30;
const STALL_TIMEOUT_MS = 120_000;

/** A scheme that is not a file's. */
const FAR_URL = /^(?!file:)[a-z][a-z0-9+.-]+:\/\//i;

/** Whether a path leads to storage that a confined runner reaches through its host alone. */
export function isFar(path: string): boolean {
  return FAR_URL.test(path);
}

/**
 * The grants for some options.
 *
 * @throws {LeatError} `not_found` for a folder that is not there; `invalid_argument` for what is none,
 * and for numbers that make no sense; `permission_denied` for what this program itself may not do,
 * which it cannot grant.
 */
export function sandboxGrants(options: SandboxOptions = {}): SandboxGrants {
  const { dataRoots = [Deno.cwd()], writeRoots = [], net = [], imports = [] } = options;
  const { memoryBytesMax = MEMORY_BYTES_MAX, stallTimeoutMs = STALL_TIMEOUT_MS } = options;
  const { heapBytesMax = Math.min(HEAP_BYTES_MAX, memoryBytesMax) } = options;
  requireAtLeast("heapBytesMax", heapBytesMax, HEAP_BYTES_MIN);
  requireAtLeast("memoryBytesMax", memoryBytesMax, MEMORY_BYTES_MIN);
  requireAtLeast("stallTimeoutMs", stallTimeoutMs, 1);
  const writable = writeRoots.map(folderOf);
  const readable = [...dataRoots.filter((root) => !isFar(root)).map(folderOf), ...writable];
  const hosts = imports.map(hostOf);
  for (const host of [...net, ...hosts]) requireHost(host);
  for (const { path } of readable) requireOwn({ name: "read", path }, "--allow-read", path);
  for (const { path } of writable) requireOwn({ name: "write", path }, "--allow-write", path);
  for (const host of net) requireOwn({ name: "net", host }, "--allow-net", host);
  for (const host of hosts) {
    requireOwn({ name: "import", host }, "--allow-import", host);
    requireOwn({ name: "net", host }, "--allow-net", host); // it is this program that fetches them
  }
  const far = dataRoots.filter(isFar);
  const limits = { heapBytesMax, memoryBytesMax, stallTimeoutMs };
  return { readable, writable, far, net, imports: hosts, ...limits };
}

/** The grants of an option that is off, on with its defaults, or says what is granted. */
export function grantsOf(confine: boolean | SandboxOptions = false): SandboxGrants | undefined {
  return confine === false ? undefined : sandboxGrants(confine === true ? {} : confine);
}

/** The flags of Deno that give a runner what is granted, and nothing else. */
export function permissionFlags({ readable, writable, net }: SandboxGrants): string[] {
  return [
    ...flagsOf("read", pathsOf(readable)),
    ...flagsOf("write", pathsOf(writable)),
    ...flagsOf("net", net),
    // Remote modules are fetched by the worker, which looks at each host on the way.
    "--deny-import",
  ];
}

function flagsOf(kind: string, values: readonly string[]): string[] {
  return values.map((value) => `--allow-${kind}=${value}`);
}

function pathsOf(folders: readonly Folder[]): string[] {
  return [...new Set(folders.flatMap(({ path, realPath }) => [path, realPath]))];
}

function folderOf(root: string): Folder {
  const path = root.startsWith("file:") ? fileURLToPath(root) : resolve(root);
  try {
    const realPath = Deno.realPathSync(path);
    if (Deno.statSync(realPath).isDirectory) return withoutComma({ path, realPath });
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    throw new LeatError(code, `The folder ${path} cannot be granted: ${message}`, { cause });
  }
  throw new LeatError("invalid_argument", `${path} cannot be granted, since it is no folder`);
}

/** Permissions are flags of a runner's process, and Deno separates the paths in a flag by commas. */
function withoutComma(folder: Folder): Folder {
  if (!folder.path.includes(",") && !folder.realPath.includes(",")) return folder;
  throw new LeatError(
    "invalid_argument",
    `The folder ${folder.path} cannot be granted: there is a comma in its path, at which Deno ` +
      "divides a list of folders. Rename it, or grant a folder above it",
  );
}

/** The host of a URL with its port; what is no URL is a host already. */
export function hostOf(source: string): string {
  if (!source.includes("://")) return source;
  const { host, protocol, port } = new URL(source);
  return port === "" ? `${host}:${protocol === "http:" ? 80 : 443}` : host;
}

/** A name or an address, with a port or without; of addresses also a range. */
function requireHost(host: string): void {
  if (/^[^\s/]+(\/\d+)?$/.test(host)) return;
  throw new LeatError(
    "invalid_argument",
    `User functions cannot be granted "${host}", which is no host: write HOST or HOST:PORT`,
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

function requireAtLeast(name: string, value: number, least: number): void {
  if (Number.isFinite(value) && value >= least) return;
  throw new LeatError("invalid_argument", `sandbox.${name} is at least ${least}, not ${value}`);
}
