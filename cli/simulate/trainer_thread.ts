/**
 * The program of a trainer's thread: a node that reaches the workers of a local cluster directly,
 * and starts trainers.
 */

import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import type { ActorContext } from "../../actors/runtime/actor.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import type { NodeContext, NodeParts } from "../../transport/thread_control.ts";
import { registerHome } from "../../platform/nodes/client_homes.ts";
import { createTrainer } from "./trainer.ts";
import type { TrainerProtocol, TrainerThreadConfig } from "./trainer_protocol.ts";

/** Sets up the node; its config is a {@linkcode TrainerThreadConfig}. */
export function setup(context: NodeContext): NodeParts {
  const { service, dispatcher, clientRefreshMs } = context.config as TrainerThreadConfig;
  let node: ActorSystem | undefined;
  let unregister = () => {};
  return {
    kinds: {
      trainer: () => ({
        kind: "trainer",
        restart: "temporary" as const,
        create: (actor: ActorContext<TrainerProtocol>) => createTrainer(actor, node!, service),
      }),
    },
    started(system) {
      node = system;
      // Clients of this thread run on its node, so batches come directly from the workers' threads.
      unregister = registerHome(service, () => ({
        system,
        dispatcher: dispatcherAt(dispatcher),
        ...(clientRefreshMs === undefined ? {} : { timings: { refreshMs: clientRefreshMs } }),
        release() {},
      }));
    },
    stopped: () => unregister(),
  };
}
