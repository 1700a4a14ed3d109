/** Reports of figures, as workers and clients send them. */
import type {
  ClientFigures,
  ProcessUsage,
} from "../../../../actors/dispatcher/protocol_figures.ts";
import type { Reported } from "../../../../actors/dispatcher/protocol_metrics.ts";
import type { TaskStats } from "../../../../actors/worker/protocol.ts";
import { noReport } from "../../../lib/no_figures.ts";
import type { TestCluster } from "../lib.ts";
import type { TestWorker } from "../test_worker.ts";

/** What a worker says: by its own clock, which began when it pleased. */
interface Report {
  readonly atMs: number;
  readonly process?: ProcessUsage;
  readonly stats?: Readonly<Record<number, Partial<TaskStats>>>;
  readonly sharing?: Readonly<Record<number, Reported<"sharing">>>;
}

export async function report(
  cluster: TestCluster,
  { name, ref, tasks }: TestWorker,
  { atMs, process, stats = {}, sharing = {} }: Report,
): Promise<void> {
  await cluster.ask("workerHeartbeat", {
    name,
    worker: ref,
    tags: [],
    tasks: [...tasks.values()].map((task) => {
      const window = sharing[task.taskId];
      return {
        ...task,
        stats: { ...noReport("task"), ...stats[task.taskId] },
        ...(window === undefined ? {} : { sharing: window }),
      };
    }),
    figures: { atMs, ...(process === undefined ? {} : { process }) },
  });
}

export async function say(
  cluster: TestCluster,
  clientId: number,
  figures: Partial<ClientFigures> & { readonly atMs: number },
): Promise<void> {
  await cluster.ask("clientHeartbeat", {
    clientId,
    figures: { ...noReport("client"), ...figures },
  });
}

/** A job of one client on so many workers, which hold their tasks. */
export async function running(cluster: TestCluster, names: readonly string[]) {
  const workers = names.map((name) => cluster.worker(name));
  for (const worker of workers) await worker.heartbeat();
  const { clientId } = await cluster.open(await cluster.dataset(), { jobName: "job" });
  const taskIds: number[] = [];
  for (const worker of workers) taskIds.push((await worker.heartbeat())[0]!);
  return { workers, taskIds, clientId };
}

export async function iterationOf(cluster: TestCluster) {
  return (await cluster.ask("describe", null)).jobs[0]!.iterations[0]!;
}
