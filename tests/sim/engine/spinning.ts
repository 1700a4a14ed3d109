/** Modules whose functions spin, for tests of the simulator. */

import type { ActorContext } from "../../../actors/runtime/actor.ts";
import { nodeActorOf } from "../../../actors/runtime/node/node_actor.ts";
import type { FencedRef } from "../../../actors/runtime/ref.ts";
import { SimCluster } from "../../../sim/engine/cluster.ts";
import type { SimNode } from "../../../sim/engine/node.ts";

/** Ways in which a node keeps itself busy; each counts its rounds. */
export const LOOPS: Record<string, (node: SimNode, context: ActorContext) => Promise<unknown>> = {
  timer: (_, context) => new Promise<void>((resolve) => context.timer(1, resolve)),
  worldTimer: ({ world }) => new Promise<void>((resolve) => world.timer(1, resolve)),
  macrotask: async ({ world }, context) => {
    await new Promise<void>((resolve) => world.macrotask(resolve));
    await new Promise<void>((resolve) => context.timer(1, resolve));
  },
  hostSleep: ({ host }) => host.sleep(1),
  hostYield: async ({ host }) => {
    await host.yield();
    await host.sleep(0.5);
  },
  ask: (_, context) => context.ask<EchoProtocol, "echo">(ECHO, "echo", 1, { timeoutMs: 1_000 }),
  askNobody: async (_, context) => {
    const nobody = { node: "nowhere", path: "/x" } as typeof ECHO;
    await context.ask<EchoProtocol, "echo">(nobody, "echo", 1, { timeoutMs: 5 }).catch(() => {});
    await new Promise<void>((resolve) => context.timer(1, resolve));
  },
};

/** Runs all loops on a node, and one that writes to its disk; returns the rounds of each. */
export function spin(node: SimNode, rounds: Map<string, number>): void {
  const { world, system } = node;
  const count = (name: string) => rounds.set(name, (rounds.get(name) ?? 0) + 1);
  system.spawn({
    name: "spinner",
    create: (context) => ({
      handlers: {},
      start() {
        for (const [name, turn] of Object.entries(LOOPS)) {
          context.run(async () => {
            for (;;) {
              await turn(node, context);
              count(name);
            }
          });
        }
        context.run(async () => {
          const log = await world.openLog("spinner");
          for (;;) {
            log.append(Uint8Array.of(1));
            await log.sync();
            count("log");
          }
        });
      },
    }),
  });
}

/**
 * A node that has an actor for an owner on another node, and a function that tells whether it
 * exists.
 */
export async function placedFor(): Promise<{ cluster: SimCluster; isThere: () => boolean }> {
  const kinds = { echo: () => ({ create: () => ({ handlers: {} }) }) };
  const cluster = new SimCluster({ seed: 1n, kinds });
  const front = cluster.addNode("front", () => {});
  let isPlaced = false;
  cluster.addNode("owner", (node) => {
    if (node.lives > 1) return;
    bootEcho(node);
    const { ref } = node.system.actors().find(({ ref: { path } }) => path === ECHO.path)!;
    const request = { kind: "echo", name: "placed", config: {}, owner: ref as FencedRef };
    node.system.ask(nodeActorOf("front"), "spawn", request, { timeoutMs: 5_000 })
      .then(() => isPlaced = true);
  });
  await cluster.run({ until: () => isPlaced, timeMaxMs: 5_000 });
  const isThere = () => front.system.actors().some(({ ref }) => ref.path === "/placed");
  return { cluster, isThere };
}

export interface EchoProtocol {
  echo(request: number): number;
}

export const ECHO = { node: "echo", path: "/echo" };

export function bootEcho({ system }: SimNode): void {
  system.spawn<EchoProtocol>({
    name: "echo",
    create: () => ({ handlers: { echo: (request) => request } }),
  });
}
