/**
 * Of which life of a worker's node tasks are: what a task held is lost with that.
 *
 * @module
 */
import type { DispatcherProtocol } from "../actors/dispatcher/protocol.ts";
import type { RequestOf } from "../actors/runtime/protocol.ts";
import type { SimNode } from "./node.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;

/** See the module. */
export class TaskLives {
  /** By task, whether the life goes on in which it is. */
  readonly #lives = new Map<number, () => boolean>();

  /** Looks at which tasks of a node that boots ask for splits. */
  watch(node: SimNode): void {
    const goesOn = node.lifetime();
    node.system.inspect((event) => {
      if (event.type !== "send" || event.envelope.kind !== "ask") return;
      const { method, body } = event.envelope;
      if (method === "getSplit") this.#lives.set((body as SplitRequest).taskId, goesOn);
    });
  }

  /** Whether the life is over in which a task has asked for splits. */
  isOver(taskId: number): boolean {
    return this.#lives.get(taskId)?.() === false;
  }
}
