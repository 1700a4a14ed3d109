/** Starts the dispatcher's actor on a node. */
import type { DispatcherConfig } from "../actors/dispatcher/config.ts";
import { createDispatcher } from "../actors/dispatcher/dispatcher.ts";
import type { DispatcherProtocol } from "../actors/dispatcher/protocol.ts";
import type { ActorSystem } from "../actors/runtime/system.ts";
import { type DispatcherRole, JOURNAL_NAME, type RunningRole } from "./roles.ts";

export function startDispatcher(
  system: ActorSystem,
  { config = {} }: DispatcherRole,
  hooks: Pick<DispatcherConfig, "dialWorker" | "isNodeAddress" | "onWorkers"> = {},
): RunningRole {
  const actor = system.spawn<DispatcherProtocol>({
    name: "dispatcher",
    create: (context) => createDispatcher(context, { ...config, ...hooks, logName: JOURNAL_NAME }),
  });
  return { actor, close: () => Promise.resolve() };
}
