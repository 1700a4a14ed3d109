/** Starts a process that runs a program of Leat, and opens a link to it. */
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { hexOf64 } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import { shownLine, shownUrls } from "../../core/shown_text.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { openProcessLink, type ProcessLinkOptions } from "../../transport/process/link.ts";
import type { Launch } from "../sandbox/guards/launcher.ts";
import { startDespiteLoader } from "./loader_variables.ts";
import { streamReader, streamWriter } from "./pipes.ts";
import { readableSlots, writableSlots } from "./slot_files.ts";
import { removeLeftFolders, SlotFolder } from "./slot_folder.ts";
import { isDiskFull, systemCode } from "../system_codes.ts";
import type { SlotFile } from "../../transport/process/slots.ts";

interface ChildOptions {
  readonly name: string;
  /** The URL of a program that calls `linkToParent`, or a command that gets the same arguments. */
  readonly program: string | Command;
  /** Flags for Deno: permissions and options of V8. */
  readonly flags?: readonly string[];
  /** The prefix of the process's output in this program's log. Default: `runner`. */
  readonly prints?: string;
  /** Limits that the kernel enforces on a program of Deno. Only Linux has them. */
  readonly limits?: Omit<Launch, "command">;
  /** Whether the process inherits this one's environment. Default: only the location of Deno's cache. */
  readonly hasEnvironment?: boolean;
  readonly link?: ProcessLinkOptions;
}

/** A program that Deno does not run, and its first arguments. */
interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

export interface ChildEnd {
  readonly code: number;
  readonly signal: string | null;
  /** The end of the process's output on standard error. */
  readonly stderrTail: string;
}

/** Whether the process ended because its memory reached a limit. */
export function ranOutOfMemory({ stderrTail }: ChildEnd): boolean {
  return /out of memory|Cannot allocate memory|memory allocation/i.test(stderrTail);
}

/** Limit of the characters of one process's standard error that are logged. */
const LOGGED_CHARS_MAX = 2 ** 20;
const LEFT_OUT =
  `(this process has printed more than ${LOGGED_CHARS_MAX} characters: the rest is left out)`;
/** How many characters of standard error are kept to explain why the process ended. */
const STDERR_TAIL_CHARS = 4_096;
/** Limit of the wait for the end of standard error after a process has ended, in ms. */
const OUTPUT_END_WAIT_MS = 2_000;
const CACHE_VARIABLES = ["DENO_DIR", "XDG_CACHE_HOME", "HOME"];

/** Whether this process has removed leftover folders. */
let hasCleanedUp = false;

export class ChildProcess {
  /** The id of this process in the link. */
  readonly local = newNodeId("worker");
  /** Rejects if the process ends before its hello. */
  readonly link: Promise<Link>;
  /**
   * Resolves when the process has ended and its output has been read. If a process that it started
   * keeps the output open, resolves a short time after the end.
   */
  readonly ended: Promise<ChildEnd>;
  readonly #child: Deno.ChildProcess;
  readonly #folder: SlotFolder;
  /** Precedes each logged line, so that a user function cannot forge a line of this program's log. */
  readonly #prefix: string;
  #stderrTail = "";
  /** The begin of a logged line that has not ended. */
  #line = "";
  /** How many more characters are logged. */
  #remaining = LOGGED_CHARS_MAX;

  /** @throws {LeatError} if the process cannot be started; the message says what it lacks. */
  constructor(options: ChildOptions) {
    this.#prefix = `${options.prints ?? "runner"}: `;
    const undo = new DisposableStack();
    try {
      const folder = this.#folder = undo.adopt(new SlotFolder(), (folder) => folder.remove());
      const close = (slots: SlotFile) => slots.close();
      // Before the process starts, because it could not be undone.
      const incomingSlots = undo.adopt(readableSlots(folder.incoming), close);
      const outgoingSlots = undo.adopt(writableSlots(folder.outgoing), close);
      this.#child = spawn(options, newNodeId(options.name), folder);
      const incoming = streamReader(this.#child.stdout);
      const outgoing = streamWriter(this.#child.stdin);
      const streams = { incoming, outgoing, incomingSlots, outgoingSlots };
      this.link = openProcessLink(streams, this.local, "listener", options.link);
    } catch (error) {
      undo.dispose();
      throw startError(error);
    }
    this.link.then(() => this.#folder.remove(), () => {});
    if (!hasCleanedUp) removeLeftFolders(this.#folder.path);
    hasCleanedUp = true;
    const stderr = this.#child.stderr.getReader();
    const logged = this.#log(stderr);
    this.ended = this.#child.status.then(async ({ code, signal }) => {
      const timer = setTimeout(() => stderr.cancel().catch(() => {}), OUTPUT_END_WAIT_MS);
      await logged;
      clearTimeout(timer);
      return { code, signal, stderrTail: this.#stderrTail };
    });
    this.ended.then(() => this.#folder.remove());
  }

  /** Ends the process at once, whatever it is doing. */
  kill(): void {
    kill(this.#child);
  }

  /** Makes the process keep this program alive, which is the initial state. */
  ref(): void {
    this.#child.ref();
  }

  /** Lets this program end while the process runs. The process ends with it. */
  unref(): void {
    this.#child.unref();
  }

  /** Logs the process's output. User functions control its content. */
  async #log(stderr: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    // If this program exits first, no later line ends this one.
    const logRest = () => this.#logRest();
    addEventListener("unload", logRest);
    for (let read = await stderr.read(); !read.done; read = await stderr.read()) {
      const text = decoder.decode(read.value, { stream: true });
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL_CHARS).toWellFormed();
      const logged = this.#prefixed(this.#linesOf(text));
      if (logged.length > 0) await Deno.stderr.write(logged).catch(() => {});
    }
    removeEventListener("unload", logRest);
    this.#logRest();
  }

  /** The lines that `text` completes. After the last one that is logged, a line says that there are more. */
  #linesOf(text: string): string[] {
    const remaining = this.#remaining;
    this.#remaining -= text.length;
    const lines = (this.#line + text.slice(0, Math.max(0, remaining))).split("\n");
    this.#line = lines.pop()!;
    if (remaining >= 0 && this.#remaining < 0) {
      lines.push(...this.#takeRest(), LEFT_OUT);
    }
    return lines;
  }

  #logRest(): void {
    try {
      Deno.stderr.writeSync(this.#prefixed(this.#takeRest()));
    } catch {
      // This program's standard error is closed.
    }
  }

  /** The line that has not ended, unless it is empty. */
  #takeRest(): string[] {
    const line = this.#line;
    this.#line = "";
    return line === "" ? [] : [line];
  }

  #prefixed(lines: readonly string[]): Uint8Array {
    return new TextEncoder().encode(
      lines.map((line) => `${this.#prefix}${shown(line)}\n`).join(""),
    );
  }
}

/**
 * Runs a program of Leat until it ends, without permissions and without a link to it. One that still
 * runs after `timeoutMs` is killed.
 */
export async function runAlone(program: string, timeoutMs: number): Promise<void> {
  const args = ["run", "--quiet", "--no-prompt", "--cached-only", ...configFlags(), program];
  const stdio = { stdin: "null", stdout: "null", stderr: "null" } as const;
  const child = started(denoCommand(), { args, ...cacheOnly(), ...stdio });
  const timer = setTimeout(() => kill(child), timeoutMs);
  await child.status;
  clearTimeout(timer);
}

/** A line of a process's output: the names of modules in the stack of an error may have secrets. */
function shown(line: string): string {
  return shownLine(shownUrls(line));
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch {
    // It has ended.
  }
}

function newNodeId(node: string): NodeId {
  const [bits] = crypto.getRandomValues(new BigUint64Array(1));
  return { node, incarnation: hexOf64(bits!) };
}

function spawn(options: ChildOptions, local: NodeId, folder: SlotFolder): Deno.ChildProcess {
  const { program, hasEnvironment = false } = options;
  // The child reads what this process writes.
  const linkArgs = [folder.outgoing, folder.incoming, local.node, local.incarnation];
  const { command, args } = typeof program === "string"
    ? { command: denoCommand(), args: denoArgs(program, options, linkArgs) }
    : { command: program.command, args: [...program.args, ...linkArgs] };
  const environment = hasEnvironment ? {} : cacheOnly();
  const stdio = { stdin: "piped", stdout: "piped", stderr: "piped" } as const;
  try {
    return started(command, { args, ...environment, ...stdio });
  } catch (cause) {
    if (shortageOf(cause) !== undefined) throw cause;
    const { code, message } = LeatError.from(cause);
    // Without its cause, which names a flag of Deno that this program has.
    if (code === "permission_denied" && typeof program === "string" && couldRunDeno) {
      throw new LeatError(
        code,
        "Cannot start a process for a pipeline: the deno on the PATH is not the one that this program was " +
          "allowed to run: it was moved, replaced or removed meanwhile. Restart this program",
      );
    }
    const name = typeof program === "string" ? "deno" : command;
    throw new LeatError(
      code,
      `Cannot start a process for a pipeline: ${message}. This program needs ` +
        `--allow-run=${name} (leat.load: allow=["run=${name}"]), and ${name} on its PATH`,
      { cause },
    );
  }
}

function started(command: string, options: Deno.CommandOptions): Deno.ChildProcess {
  return startDespiteLoader((added) =>
    new Deno.Command(command, { ...options, env: { ...options.env, ...added } }).spawn()
  );
}

function startError(cause: unknown): LeatError {
  if (cause instanceof LeatError) return cause;
  const { code, message } = LeatError.from(cause);
  const remedy = shortageOf(cause);
  return new LeatError(
    remedy === undefined ? code : "resource_exhausted",
    `Cannot start a process for a pipeline: ${message}${remedy === undefined ? "" : `. ${remedy}`}`,
    { cause },
  );
}

/** What to do if the system has no more of something that a process needs. */
function shortageOf(error: unknown): string | undefined {
  if (isDiskFull(error)) {
    return "The disk of the folder for temporary files is full: free space, or set TMPDIR to another";
  }
  switch (systemCode(error)) {
    case "EMFILE":
    case "ENFILE":
      return "Raise the limit of open files (ulimit -n), or run fewer tasks in this process";
    case "EAGAIN":
    case "ENOMEM":
      return "Raise the limit of processes (ulimit -u, or that of the container), add memory, or run " +
        "fewer tasks on this machine";
  }
  return undefined;
}

/** The arguments with which Deno runs a program, through the launcher if there are limits. */
function denoArgs(
  program: string,
  { flags = [], limits }: ChildOptions,
  linkArgs: readonly string[],
): string[] {
  const [readSlots, writtenSlots] = linkArgs as [string, string];
  requireNoComma(dirname(readSlots));
  const args = [
    ...["run", "--quiet", "--no-prompt", "--cached-only", ...configFlags(), ...flags],
    // With a path, the flag would narrow `--allow-read` to that path.
    ...(flags.includes("--allow-read") ? [] : [`--allow-read=${readSlots}`]),
    ...[`--allow-write=${writtenSlots}`, program, ...linkArgs],
  ];
  if (limits === undefined || Deno.build.os !== "linux") return args;
  return launcherArgs({
    ...limits,
    command: [Deno.execPath(), ...args],
    readable: [...limits.readable, ...programPaths(), readSlots],
    writable: [...limits.writable, writtenSlots],
  });
}

/** Refuses a path with a comma, because Deno's flags separate paths by commas. */
function requireNoComma(slotFolder: string): void {
  if (!slotFolder.includes(",")) return;
  const folder = dirname(slotFolder);
  throw new LeatError(
    "failed_precondition",
    `Cannot start a process for a pipeline: the folder for temporary files, ${folder}, has a comma in ` +
      "its path, with which Deno separates paths. Set TMPDIR to another folder",
  );
}

function launcherArgs(launch: Launch): string[] {
  return [
    ...["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--cached-only"],
    ...["--allow-ffi", "--allow-sys=homedir", `--allow-env=${CACHE_VARIABLES.join(",")}`],
    ...[
      fileURLToPath(import.meta.resolve("../sandbox/guards/launcher.ts")),
      JSON.stringify(launch),
    ],
  ];
}

/** The path of this program's own Deno if this program may run it, otherwise `deno` on the PATH. */
function denoCommand(): string {
  const command = Deno.execPath();
  return mayRun(command) ? command : "deno";
}

function mayRun(command: string): boolean {
  return Deno.permissions.querySync({ name: "run", command }).state === "granted";
}

/** Deno grants the file that a command's name has led to at the start, not the name. */
const couldRunDeno = mayRun(denoCommand());

/** The root folder of Leat's source. */
const SOURCE_ROOT = new URL("../../", import.meta.url);

/** Makes module names resolve as in this program. */
function configFlags(): string[] {
  if (SOURCE_ROOT.protocol !== "file:") {
    throw new LeatError(
      "unimplemented",
      "Confined processes need Leat's files on this machine, but this program imports them from " +
        `${SOURCE_ROOT}: clone Leat beside your project and link it`,
    );
  }
  return ["--config", fileURLToPath(new URL("deno.json", SOURCE_ROOT)), "--frozen"];
}

/** The files and folders that contain a runner's program. */
function programPaths(): string[] {
  const parts = [
    "actors",
    "core",
    "data",
    "transport",
    "platform",
    "server",
    "deno.json",
    "deno.lock",
  ];
  return parts.map((part) => fileURLToPath(new URL(part, SOURCE_ROOT)));
}

/**
 * An environment without secrets: only the variables that locate Deno's cache. If this program may not
 * read these variables, or on Windows, the whole environment is inherited.
 */
function cacheOnly(): Pick<Deno.CommandOptions, "clearEnv" | "env"> {
  const isGranted = CACHE_VARIABLES.every((variable) =>
    Deno.permissions.querySync({ name: "env", variable }).state === "granted"
  );
  // Colour codes would appear escaped in the log, and hide which lines of an error quote source.
  const env: Record<string, string> = { NO_COLOR: "1" };
  if (!isGranted || Deno.build.os === "windows") return { env };
  for (const name of CACHE_VARIABLES) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return { clearEnv: true, env };
}
