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
  readonly #lives = new Map<number, { readonly node: SimNode; readonly life: number }>();

  /** Looks at which tasks of a node that boots ask for splits. */
  watch(node: SimNode): void {
    const worker = { node, life: node.lives };
    node.system.inspect((event) => {
      if (event.type !== "send" || event.envelope.kind !== "ask") return;
      const { method, body } = event.envelope;
      if (method === "getSplit") this.#lives.set((body as SplitRequest).taskId, worker);
    });
  }

  /** Whether the life is over in which a task has asked for splits. */
  isOver(taskId: number): boolean {
    const worker = this.#lives.get(taskId);
    return worker !== undefined && (!worker.node.isUp || worker.node.lives !== worker.life);
  }
}
