/** The module that a thread of a local cluster runs: a node with a role of the service. */
import type { NodeContext, NodeParts } from "../transport/thread_control.ts";
import { webSocketConnector } from "../transport/web_socket.ts";
import {
  loadRole,
  type Role,
  type RolePrograms,
  type RunningRole,
  supervisionOf,
} from "./roles.ts";
import { PROXY_KINDS } from "../platform/nodes/service_kinds.ts";

/** With literals in `import()`, Deno would load the modules of all roles for each thread. */
const PROGRAMS: RolePrograms = {
  dispatcher: () => import(import.meta.resolve("./dispatcher_role.ts")),
  worker: () => import(import.meta.resolve("./worker_role.ts")),
  inlineRunners: () => import(import.meta.resolve("../platform/threads/inline_runners.ts")),
};

/** Sets up the node; `config` is its {@linkcode Role}. */
export async function setup(
  { world, config, startThread, endNode }: NodeContext,
): Promise<NodeParts> {
  const role = config as Role;
  const startRole = await loadRole(role, PROGRAMS, { startThread });
  const connector = webSocketConnector({ world });
  let runningRole: RunningRole | undefined;
  return {
    kinds: PROXY_KINDS,
    supervision: supervisionOf(role),
    connectors: { ws: connector, wss: connector },
    started(system) {
      runningRole = startRole(system);
      // Nothing in this thread can repair a dispatcher that used up its restarts.
      if (role.role === "dispatcher") system.failed.then(endNode);
    },
    async stopped() {
      await runningRole?.close();
    },
  };
}
