/** The task of a worker whose pipeline reads from a service, as the task's own service knows it. */
export interface ReadingTask {
  /** The name of the task's service: `taskId` is valid only there. */
  readonly clusterId: string;
  readonly taskId: number;
}
