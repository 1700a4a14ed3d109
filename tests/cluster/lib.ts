/** Real processes of a cluster on this host, for tests: started on free ports, always ended. */
import { type Child, type ChildOptions, startChild } from "../lib/child.ts";
import { freePort } from "../lib/free_port.ts";
import { PATIENCE_MS } from "../lib/until.ts";

/** For tests that kill a worker: its connection is closed, so that no timeout is waited for. */
export const SOON_GIVEN_UP = ["--worker-grace-ms", "100"];

/**
 * Defaults of tests: free ports, and timings that keep tests short, but with timeouts that a slow
 * machine does not reach.
 */
const dispatcherDefaults = () => ({
  // In a namespace of its own it is free, too.
  "--port": `${freePort()}`,
  "--worker-timeout-ms": "600000",
});
const WORKER_DEFAULTS = { "--heartbeat-ms": "200", "--drain-ms": "0" };

/** A program of a cluster that listens. */
export interface Part extends AsyncDisposable {
  readonly child: Child;
  readonly address: string;
}

/** Starts a dispatcher; resolves when it listens. */
export function startDispatcher(...args: string[]): Promise<Part> {
  return startPart("cli/dispatcher.ts", args, dispatcherDefaults());
}

/** Starts a worker; resolves when it listens. */
export function startWorker(dispatcher: string, ...args: string[]): Promise<Part> {
  return startPart("cli/worker.ts", ["--dispatcher", dispatcher, ...args], WORKER_DEFAULTS);
}

/** Starts a dispatcher with a limit of open files and connections. */
export function startDispatcherWith(openFilesMax: number, ...args: string[]): Promise<Part> {
  return startPart("cli/dispatcher.ts", args, dispatcherDefaults(), { openFilesMax });
}

/** Starts a worker with a limit of open files and connections. */
export function startWorkerWith(
  openFilesMax: number,
  dispatcher: string,
  ...args: string[]
): Promise<Part> {
  const given = ["--dispatcher", dispatcher, ...args];
  return startPart("cli/worker.ts", given, WORKER_DEFAULTS, { openFilesMax });
}

/** Starts a dispatcher in a network of its own. */
export function startDispatcherIn(namespace: string, ...args: string[]): Promise<Part> {
  return startPart("cli/dispatcher.ts", args, dispatcherDefaults(), { namespace });
}

/** Starts a worker in a network of its own. */
export function startWorkerIn(
  namespace: string,
  dispatcher: string,
  ...args: string[]
): Promise<Part> {
  const given = ["--dispatcher", dispatcher, ...args];
  return startPart("cli/worker.ts", given, WORKER_DEFAULTS, { namespace });
}

/** Starts workers named w1, w2, …; resolves when all are registered. */
export async function startWorkers(
  dispatcher: Part,
  count: number,
  ...args: string[]
): Promise<Part[]> {
  const workers = await Promise.all(
    Array.from(
      { length: count },
      (_, i) => startWorker(dispatcher.address, "--name", `w${i + 1}`, ...args),
    ),
  );
  await dispatcher.child.line(new RegExp(`${count} of ${count} workers? alive`));
  return workers;
}

/** Ends several parts, in reverse order of their start. */
export function all(parts: readonly Part[]): AsyncDisposable {
  return {
    [Symbol.asyncDispose]: async () => {
      await Promise.all(parts.map((part) => part[Symbol.asyncDispose]()));
    },
  };
}

/** The result of a promise; fails the test if it seems to hang. */
export async function soon<T>(
  what: string,
  promise: Promise<T>,
  patienceMs: number = PATIENCE_MS,
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new Error(`${what}: nothing within ${patienceMs} ms`)),
    patienceMs,
  );
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

async function startPart(
  program: string,
  given: readonly string[],
  defaults: Readonly<Record<string, string>>,
  options: Pick<ChildOptions, "namespace" | "openFilesMax"> = {},
): Promise<Part> {
  const rest = Object.entries(defaults).filter(([option]) => !given.includes(option)).flat();
  const child = startChild(program, { ...options, args: [...given, ...rest] });
  try {
    const [, address = ""] = await child.line(/listening on (\S+)/);
    return { child, address, [Symbol.asyncDispose]: () => child[Symbol.asyncDispose]() };
  } catch (error) {
    await child[Symbol.asyncDispose]();
    throw error;
  }
}
