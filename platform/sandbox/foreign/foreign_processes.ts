/** Starts confined processes for foreign functions, where possible; loads the code when needed. */
import type { ForeignRunner, ForeignRunners } from "../../../data/foreign/foreign_runners.ts";
import type { SandboxOptions } from "../grants.ts";

/** The limits of such a process. The defaults are a worker's. */
export type ForeignLimits = Pick<
  SandboxOptions,
  "heapBytesMax" | "memoryBytesMax" | "stallTimeoutMs"
>;

/** Starts confined runners for functions from outside this program's build. */
export function foreignProcesses(limits: ForeignLimits = {}): ForeignRunners {
  return {
    get obstacle() {
      if (Deno.build.os !== "linux") {
        return `only the kernel of Linux keeps the limits of one, and this is ${Deno.build.os}`;
      }
      const mayRun = [Deno.execPath(), "deno"].some((command) =>
        Deno.permissions.querySync({ name: "run", command }).state === "granted"
      );
      return mayRun
        ? undefined
        : "this program lacks the permission to: run it with --allow-run=deno " +
          '(leat.load: allow=["run=deno"])';
    },
    start: () => lateRunner(limits),
  };
}

/** Loads the runner with its first part. */
function lateRunner(limits: ForeignLimits): ForeignRunner {
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
