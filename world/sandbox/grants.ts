/**
 * What the operator of a worker grants to user functions.
 *
 * @module
 */
import { resolve, sep } from "node:path";
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
  /** How long a function may hold its thread without giving way, in ms. Default two minutes. */
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
  readonly stallTimeoutMs: number;
}

/** What a thread reaches through its host: far files, and services. */
export type ReachedByHost = Pick<SandboxGrants, "far" | "net">;

const HEAP_BYTES_MAX = 2 * 2 ** 30;
/** Less does not hold the program itself. */
const HEAP_BYTES_MIN = 64 * 2 ** 20;
const STALL_TIMEOUT_MS = 120_000;

/** A scheme that is not a file's. */
const FAR_URL = /^(?!file:)[a-z][a-z0-9+.-]+:\/\//i;

/** Whether a path leads to storage that a confined thread reaches through its host alone. */
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
  const { heapBytesMax = HEAP_BYTES_MAX, stallTimeoutMs = STALL_TIMEOUT_MS } = options;
  requireAtLeast("heapBytesMax", heapBytesMax, HEAP_BYTES_MIN);
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
  return { readable, writable, far, net, imports: hosts, heapBytesMax, stallTimeoutMs };
}

/** The permissions of a confined thread, on top of which it reads its own program. */
export function permissionsOf(
  { readable, writable, net, imports }: SandboxGrants,
  program: ProgramAccess,
): Deno.PermissionOptionsObject {
  return {
    read: [...pathsOf(readable), ...program.read],
    write: pathsOf(writable),
    import: [...imports, ...program.imports],
    net: [...net],
    env: false,
    run: false,
    ffi: false,
    sys: false,
  };
}

/** What a thread needs while its program is loaded, and gives back before it loads anything else. */
export interface ProgramAccess {
  readonly read: readonly string[];
  readonly imports: readonly string[];
}

/** The one that functions may not import, whatever is granted: what confines them is there. */
const MACHINE = "world/";
/** The rooms that a confined thread's program consists of. */
const ROOMS = ["actors/", "core/", "data/", "transport/", MACHINE];

/** Beginnings of the URLs of this program's own modules. */
export function programUrls(): string[] {
  const top = new URL("../../", import.meta.url);
  return ROOMS.map((room) => new URL(room, top).href);
}

/** The beginning of the URLs of those that functions never import. */
export function machineUrl(): string {
  return new URL(`../../${MACHINE}`, import.meta.url).href;
}

/**
 * Where this program's own modules are, as far as that is not granted anyway: folders, or a host.
 *
 * A folder below a granted one is left out: to give it back would give back the granted one, too.
 */
export function programAccess({ readable, imports }: SandboxGrants): ProgramAccess {
  const top = new URL("../../", import.meta.url);
  if (top.protocol !== "file:") {
    const host = hostOf(top.href);
    return { read: [], imports: imports.includes(host) ? [] : [host] };
  }
  const rooms = ROOMS.map((room) => fileURLToPath(new URL(room, top)).replace(/\/$/, ""));
  const granted = pathsOf(readable);
  const isGranted = (room: string) => granted.some((folder) => isWithin(room, folder));
  return { read: rooms.filter((room) => !isGranted(room)), imports: [] };
}

/** Whether a path is a folder's or leads below it, as it is written: so permissions go. */
function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : `${folder}${sep}`);
}

function pathsOf(folders: readonly Folder[]): string[] {
  return folders.flatMap(({ path, realPath }) => [path, realPath]);
}

function folderOf(root: string): Folder {
  const path = root.startsWith("file:") ? fileURLToPath(root) : resolve(root);
  try {
    const realPath = Deno.realPathSync(path);
    if (Deno.statSync(realPath).isDirectory) return { path, realPath };
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    throw new LeatError(code, `The folder ${path} cannot be granted: ${message}`, { cause });
  }
  throw new LeatError("invalid_argument", `${path} cannot be granted, since it is no folder`);
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
