/** A process that this one starts for a program of Leat, with a link to it. */
import { fileURLToPath } from "node:url";
import { hexOf64 } from "../../core/bytes.ts";
import { LeatError } from "../../core/error.ts";
import { shownText } from "../../core/shown_text.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { openProcessLink, type ProcessLinkOptions } from "../../transport/process/link.ts";
import type { Launch } from "../sandbox/guards/launcher.ts";
import { loaderVariables } from "./loader_variables.ts";
import { streamReader, streamWriter } from "./pipes.ts";
import { readableSlots, writableSlots } from "./slot_files.ts";
import { removeLeftFolders, SlotFolder } from "./slot_folder.ts";

interface ChildOptions {
  readonly name: string;
  /** The URL of its program, which calls `linkToParent`; or a command, which gets the same arguments. */
  readonly program: string | Command;
  /** Flags of Deno: its permissions and its engine's. */
  readonly flags?: readonly string[];
  /** The prefix of its output in this program's log. Default: `runner`. */
  readonly prints?: string;
  /** Limits that the kernel enforces on a program of Deno, if the system has them (Linux). */
  readonly limits?: Omit<Launch, "command">;
  /** Whether it inherits this process's environment. Default: only the location of Deno's cache. */
  readonly hasEnvironment?: boolean;
  readonly link?: ProcessLinkOptions;
}

/** A program that is not Deno's, and its first arguments. */
interface Command {
  readonly command: string;
  readonly args: readonly string[];
}

export interface ChildEnd {
  readonly code: number;
  readonly signal: string | null;
  /** The end of its output on standard error. */
  readonly stderrTail: string;
}

/** Most characters of one process's standard error that are logged. */
const LOGGED_CHARS_MAX = 2 ** 20;
/** Characters of it that are kept to explain an end. */
const STDERR_TAIL_CHARS = 4_096;
const CACHE_VARIABLES = ["DENO_DIR", "XDG_CACHE_HOME", "HOME"];

/** Whether this process has looked for leftover folders. */
let hasLooked = false;

export class ChildProcess {
  /** The id of this process in the link. */
  readonly local = nodeNamed("worker");
  /** Rejects if the process ends before its hello. */
  readonly link: Promise<Link>;
  /** Settles when the process has ended and its output is read. */
  readonly ended: Promise<ChildEnd>;
  readonly #child: Deno.ChildProcess;
  readonly #folder = new SlotFolder();
  /** Precedes each logged line, so that no user function can forge a line of its worker. */
  readonly #prefix: string;
  #stderrTail = "";

  /** @throws {LeatError} if no process can be started, with what is missing. */
  constructor(options: ChildOptions) {
    this.#prefix = `${options.prints ?? "runner"}: `;
    try {
      this.#child = spawn(options, nodeNamed(options.name), this.#folder);
      const streams = {
        incoming: streamReader(this.#child.stdout),
        outgoing: streamWriter(this.#child.stdin),
        incomingSlots: readableSlots(this.#folder.incoming),
        outgoingSlots: writableSlots(this.#folder.outgoing),
      };
      this.link = openProcessLink(streams, this.local, "listener", options.link);
    } catch (error) {
      this.#folder.remove();
      throw error;
    }
    this.link.then(() => this.#folder.remove(), () => {});
    if (!hasLooked) removeLeftFolders(this.#folder.path);
    hasLooked = true;
    const logged = this.#log();
    this.ended = this.#child.status.then(async ({ code, signal }) => {
      await logged;
      return { code, signal, stderrTail: this.#stderrTail };
    });
    this.ended.then(() => this.#folder.remove());
  }

  /** Ends the process at once, whatever it is doing. */
  kill(): void {
    try {
      this.#child.kill("SIGKILL");
    } catch {
      // It has ended.
    }
  }

  /** Makes the process keep this program alive, as it does at first. */
  ref(): void {
    this.#child.ref();
  }

  /** Lets this program end while the process runs. The process then ends, too. */
  unref(): void {
    this.#child.unref();
  }

  /** Logs the process's output. User functions control its content. */
  async #log(): Promise<void> {
    const decoder = new TextDecoder();
    const encoder = new TextEncoder();
    let left = LOGGED_CHARS_MAX;
    let line = "";
    for await (const chunk of this.#child.stderr) {
      const text = decoder.decode(chunk, { stream: true });
      this.#stderrTail = (this.#stderrTail + text).slice(-STDERR_TAIL_CHARS);
      const lines = (line + text.slice(0, Math.max(0, left))).split("\n");
      left -= text.length;
      line = lines.pop()!;
      const logged = lines.map((said) => `${this.#prefix}${shownText(said)}\n`).join("");
      if (logged !== "") await Deno.stderr.write(encoder.encode(logged)).catch(() => {});
    }
    if (line !== "") {
      await Deno.stderr.write(encoder.encode(`${this.#prefix}${shownText(line)}\n`)).catch(
        () => {},
      );
    }
  }
}

/** Runs a program of Leat to its end, without permissions, and without a link to it. */
export async function runAlone(program: string): Promise<void> {
  const args = ["run", "--quiet", "--no-prompt", "--cached-only", ...configFlags(), program];
  const stdio = { stdin: "null", stdout: "null", stderr: "null" } as const;
  await new Deno.Command(denoCommand(), { args, ...cacheOnly(), ...stdio }).output();
}

function nodeNamed(node: string): NodeId {
  const [bits] = crypto.getRandomValues(new BigUint64Array(1));
  return { node, incarnation: hexOf64(bits!) };
}

function spawn(options: ChildOptions, local: NodeId, folder: SlotFolder): Deno.ChildProcess {
  const { program, hasEnvironment = false } = options;
  // The child reads what this process writes.
  const told = [folder.outgoing, folder.incoming, local.node, local.incarnation];
  const { command, args } = typeof program === "string"
    ? { command: denoCommand(), args: denoArgs(program, options, told) }
    : { command: program.command, args: [...program.args, ...told] };
  const spawned = new Deno.Command(command, {
    args,
    ...(hasEnvironment ? { env: loaderVariables() } : cacheOnly()),
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  });
  try {
    return spawned.spawn();
  } catch (cause) {
    const { code, message } = LeatError.from(cause);
    const name = typeof program === "string" ? "deno" : command;
    throw new LeatError(
      code,
      `A process for a pipeline cannot be started: ${message}. This program needs ` +
        `--allow-run=${name} (leat.load: allow=["run=${name}"]), and ${name} on its PATH`,
      { cause },
    );
  }
}

/** The arguments for a program of Deno, confined if there are limits. */
function denoArgs(
  program: string,
  { flags = [], limits }: ChildOptions,
  told: readonly string[],
): string[] {
  const [read, written] = told as [string, string];
  const args = [
    ...["run", "--quiet", "--no-prompt", "--cached-only", ...configFlags(), ...flags],
    // A flag that names a path would narrow one that names none.
    ...(flags.includes("--allow-read") ? [] : [`--allow-read=${read}`]),
    ...[`--allow-write=${written}`, program, ...told],
  ];
  if (limits === undefined || Deno.build.os !== "linux") return args;
  return launcherArgs({
    ...limits,
    command: [Deno.execPath(), ...args],
    readable: [...limits.readable, ...programPaths(), read],
    writable: [...limits.writable, written],
  });
}

function launcherArgs(launch: Launch): string[] {
  return [
    ...["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--cached-only"],
    ...["--allow-ffi", `--allow-env=${CACHE_VARIABLES.join(",")}`],
    ...[
      fileURLToPath(import.meta.resolve("../sandbox/guards/launcher.ts")),
      JSON.stringify(launch),
    ],
  ];
}

/** This program's own Deno if it may be run by its path, else the one on the PATH. */
function denoCommand(): string {
  const command = Deno.execPath();
  const { state } = Deno.permissions.querySync({ name: "run", command });
  return state === "granted" ? command : "deno";
}

/** The root folder of Leat's source. */
const TOP = new URL("../../", import.meta.url);

/** Lets module names resolve as in this program. */
function configFlags(): string[] {
  if (TOP.protocol !== "file:") {
    throw new LeatError(
      "unimplemented",
      `Confined processes need Leat's files on this machine, and this program has them from ${TOP}: ` +
        "clone Leat beside your project and link it",
    );
  }
  return ["--config", fileURLToPath(new URL("deno.json", TOP)), "--frozen"];
}

/** The files of a runner's program. */
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
  return parts.map((part) => fileURLToPath(new URL(part, TOP)));
}

/** An environment without secrets: what Deno needs, as far as this program may read it. */
function cacheOnly(): Pick<Deno.CommandOptions, "clearEnv" | "env"> {
  const isGranted = CACHE_VARIABLES.every((variable) =>
    Deno.permissions.querySync({ name: "env", variable }).state === "granted"
  );
  if (!isGranted || Deno.build.os === "windows") return { env: loaderVariables() };
  // Colour codes would appear escaped in the log.
  const env: Record<string, string> = { NO_COLOR: "1" };
  for (const name of CACHE_VARIABLES) {
    const value = Deno.env.get(name);
    if (value !== undefined) env[name] = value;
  }
  return { clearEnv: true, env };
}
