/**
 * Tracks which workers received tasks. A worker that did not reach the dispatcher before a job ended
 * takes no part in the job.
 */
import type { WorkNews } from "../../../actors/dispatcher/protocol_heartbeats.ts";
import type { SimNode } from "../../engine/node.ts";

/** The workers of a run that received tasks. */
export class TaskedWorkers {
  readonly #names = new Set<string>();

  /** Number of these workers. */
  get count(): number {
    return this.#names.size;
  }

  /** Watches the tasks that the worker of a starting node receives. */
  watch({ name, system }: SimNode): void {
    system.inspect((event) => {
      if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
      const { newTasks = [] } = event.envelope.body as Partial<WorkNews> | null ?? {};
      if (newTasks.length > 0) this.#names.add(name);
    });
  }
}
