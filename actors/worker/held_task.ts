/** A task as its worker holds it, and its status for heartbeats. */
import type { TaskDefinition, TaskStatus } from "../dispatcher/protocol.ts";
import type { FencedRef } from "../runtime/ref.ts";
import type { ElementSourceProtocol, TaskStats } from "./protocol.ts";
import type { TaskProtocol } from "./tasks/task.ts";
import { definedFields } from "../../core/tree.ts";

export interface HeldTask {
  readonly definition: TaskDefinition;
  /**
   * Names the task's actor, and its cache or scheduler. Task ids count up, but a key cannot be
   * guessed: a client can read a task only with the key that the dispatcher gave it.
   */
  readonly key: string;
  readonly task: FencedRef<TaskProtocol>;
  source: FencedRef<ElementSourceProtocol> | undefined;
  completed: boolean;
  failed: boolean;
  /** The dispatcher has ended it, or allows it no more runners. */
  isFenced: boolean;
  /** Its pipeline cannot continue: clients get the error. */
  isUnreadable: boolean;
  /** The newest figures of the task, and of the window in front of it. */
  stats: TaskStats | undefined;
  sharing: TaskStatus["sharing"];
  /** The status that the dispatcher has, as text; undefined if it may have none. */
  reported: string | undefined;
  /** The task's cache or scheduler, if it was placed on another node. */
  placed: { readonly node: string; readonly name: string } | undefined;
}

/**
 * Whether nobody needs a drained task once its elements have been read. Clients still read the end
 * of one that is completed, and the error of one that has failed.
 */
export function endsWithDrain({ completed, isUnreadable }: HeldTask): boolean {
  return !completed && !isUnreadable;
}

/**
 * The status for the next heartbeat. A worker may hold hundreds of completed tasks, until their
 * iterations are forgotten, so what the dispatcher has of these is left out.
 */
export function statusOf(held: HeldTask): TaskStatus {
  const { definition: { taskId }, source, completed, failed, stats, sharing } = held;
  if (failed) return { taskId, completed, failed };
  const status = { taskId, completed, ...definedFields({ source, stats, sharing }) };
  if (!completed) return status;
  const text = JSON.stringify(status);
  if (text === held.reported) return { taskId, completed };
  held.reported = text;
  return status;
}
