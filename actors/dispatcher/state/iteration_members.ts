/** The tasks and clients of an iteration, found without a scan of all. */
import { type Client, isServing, type Task } from "./entities.ts";
import type { RoundIndex } from "../modes/coordinated/round_index.ts";

/** The members of one iteration. The tables maintain it; it is derived from their entities. */
export class IterationMembers {
  readonly tasks: Set<Task> = new Set();
  readonly taskOfWorker: Map<string, Task> = new Map();
  /** Number of tasks that have not produced everything. */
  tasksToComplete = 0;
  readonly clients: Set<Client> = new Set();
  /** Undefined if reads are not coordinated. */
  readonly rounds: RoundIndex | undefined;

  constructor(rounds: RoundIndex | undefined) {
    this.rounds = rounds;
  }

  addTask(task: Task): void {
    this.tasks.add(task);
    this.taskOfWorker.set(task.worker, task);
    if (!task.completed) this.tasksToComplete++;
    if (isServing(task)) this.rounds?.serves(task.taskId);
  }

  completeTask(task: Task): void {
    if (!task.completed) this.tasksToComplete--;
    task.completed = true;
  }

  removeTask(task: Task): void {
    this.tasks.delete(task);
    this.taskOfWorker.delete(task.worker);
    if (!task.completed) this.tasksToComplete--;
    if (isServing(task)) this.rounds?.servesNoMore(task.taskId);
  }

  addClient(client: Client): void {
    this.clients.add(client);
    this.rounds?.comes(client);
  }

  removeClient(client: Client): void {
    this.clients.delete(client);
    this.rounds?.leaves(client);
  }
}
