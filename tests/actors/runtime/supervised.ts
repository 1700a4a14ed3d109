/** A parent and its supervised children, for tests. */
import type { ChildSpec, Supervision } from "../../../actors/runtime/actor.ts";
import type { FencedRef, Ref } from "../../../actors/runtime/ref.ts";
import { type Probe, probe, type TestNode } from "./nodes.ts";

export const FAST: Supervision = { backoffMinMs: 1, backoffMaxMs: 4 };

/** The protocol of a parent of probes. */
interface Parent {
  child(name: string): FencedRef | null;
  stop(name: string): null;
  spawn(name: string): FencedRef;
}

/** Spawns an actor with probes below it; `log` gets each start and stop of them. */
export function spawnParent(
  node: TestNode,
  names: readonly string[],
  supervision: Supervision,
  options: { log?: string[]; child?: Partial<ChildSpec<Probe>> } = {},
): FencedRef<Parent> {
  const { log = [], child = {} } = options;
  const childSpec = (name: string): ChildSpec<Probe> => ({
    name,
    create(context) {
      log.push(`start ${name}`);
      return {
        ...probe(context),
        stop(error) {
          log.push(`stop ${name}${error === undefined ? "" : " " + error.code}`);
        },
      };
    },
    ...child,
  });
  return node.system.spawn<Parent>({
    name: "parent",
    supervision,
    create: (context) => ({
      handlers: {
        child: (name) => context.child(name) ?? null,
        async stop(name) {
          await context.stopChild(name);
          return null;
        },
        spawn: (name) => context.spawn(childSpec(name)),
      },
      start() {
        for (const name of names) context.spawn(childSpec(name));
      },
    }),
  });
}

export function childOf(parent: Ref, name: string): Ref<Probe> {
  return { node: parent.node, path: `${parent.path}/${name}` };
}
