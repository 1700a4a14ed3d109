/** A confined process whose host process is a stand-in. */
import { GrantedPython } from "../../../platform/python/granted_python.ts";
import { ConfinedProcess } from "../../../platform/sandbox/confined_process.ts";
import { sandboxGrants } from "../../../platform/sandbox/grants.ts";
import { type HostProcesses, TaskHost } from "../../../platform/sandbox/host/host_processes.ts";
import { FetchedModules } from "../../../platform/sandbox/modules/fetched_modules.ts";

/** What a {@linkcode TaskHost} uses of its process. */
interface StandIn {
  readonly isAlive: boolean;
  ask(method: string, args: unknown): Promise<unknown>;
  terminate(): Promise<void>;
}

/** Resolves to the process once it has loaded. */
export async function startedWithHost(host: StandIn): Promise<ConfinedProcess> {
  const grants = sandboxGrants({ dataRoots: [] });
  const open = () => new TaskHost(() => Promise.resolve(host as never));
  const runner = new ConfinedProcess({
    grants,
    hosts: { open } as HostProcesses,
    modules: new FetchedModules([]),
    python: new GrantedPython([], grants.stallTimeoutMs),
    storageLatencyMs: 0,
    onGuarded: () => {},
    onEnded: () => {},
  });
  await runner.loaded;
  return runner;
}
