/** Starts confined processes for functions from outside this program's build, if the host can. */
import type { ForeignRunner, ForeignRunners } from "../../../data/foreign/foreign_runners.ts";
import type { SandboxOptions } from "../grants.ts";

/** Limits of a confined process. The defaults are those of a worker. */
export type ForeignLimits = Pick<
  SandboxOptions,
  "heapBytesMax" | "memoryBytesMax" | "stallTimeoutMs"
>;

/** Returns what starts the confined processes, or why this program cannot start them. */
export function foreignProcesses(limits: ForeignLimits = {}): ForeignRunners {
  return {
    get obstacle() {
      if (Deno.build.os !== "linux") {
        return `only Linux enforces the limits of a confined process, and this is ${Deno.build.os}`;
      }
      const mayRun = [Deno.execPath(), "deno"].some((command) =>
        Deno.permissions.querySync({ name: "run", command }).state === "granted"
      );
      return mayRun
        ? undefined
        : 'this program may not run deno: grant it with --allow-run=deno (leat.load: allow=["run=deno"])';
    },
    start: () => lazyRunner(limits),
  };
}

/** A runner whose code is loaded with the first part, because most programs have no such functions. */
function lazyRunner(limits: ForeignLimits): ForeignRunner {
  let loading: Promise<ForeignRunner> | undefined;
  let isClosed = false;
  const load = async () => {
    const { ProcessRunner } = await import("./process_runner.ts");
    const runner = new ProcessRunner(limits);
    if (isClosed) runner.close();
    return runner;
  };
  return {
    open: async (part, openInput) => await (await (loading ??= load())).open(part, openInput),
    close: async () => {
      isClosed = true;
      await loading?.then((runner) => runner.close(), () => {});
    },
  };
}
