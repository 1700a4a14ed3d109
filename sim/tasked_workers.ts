/**
 * Which workers were given tasks: one of which a dispatcher heard nothing before a job was over has
 * no part in it.
 *
 * @module
 */
import type { DispatcherProtocol } from "../actors/dispatcher/protocol.ts";
import type { AnswerOf } from "../actors/runtime/protocol.ts";
import type { SimNode } from "./node.ts";

type HeartbeatAnswer = AnswerOf<DispatcherProtocol, "workerHeartbeat">;

/** See the module. */
export class TaskedWorkers {
  readonly #names = new Set<string>();

  /** How many there are. */
  get count(): number {
    return this.#names.size;
  }

  /** Looks at what the worker of a node that boots is told. */
  watch({ name, system }: SimNode): void {
    system.inspect((event) => {
      if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
      const { newTasks = [] } = event.envelope.body as Partial<HeartbeatAnswer> | null ?? {};
      if (newTasks.length > 0) this.#names.add(name);
    });
  }
}
