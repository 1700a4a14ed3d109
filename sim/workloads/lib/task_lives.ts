/**
 * Tracks in which life of a worker's node each task runs, because the task's elements are lost when that
 * life ends.
 */
import type { DispatcherProtocol } from "../../../actors/dispatcher/protocol.ts";
import type { RequestOf } from "../../../actors/runtime/protocol.ts";
import type { SimNode } from "../../engine/node.ts";

type SplitRequest = RequestOf<DispatcherProtocol, "getSplit">;

/** The lives of all tasks of a run. */
export class TaskLives {
  /** For each task, whether its life still lasts. */
  readonly #lives = new Map<number, () => boolean>();

  /** Watches which tasks of a starting node request splits. */
  watch(node: SimNode): void {
    const goesOn = node.lifetime();
    node.system.inspect((event) => {
      if (event.type !== "send" || event.envelope.kind !== "ask") return;
      const { method, body } = event.envelope;
      if (method === "getSplit") this.#lives.set((body as SplitRequest).taskId, goesOn);
    });
  }

  /** Whether a task requested splits in a life that has ended. */
  isOver(taskId: number): boolean {
    return this.#lives.get(taskId)?.() === false;
  }
}
