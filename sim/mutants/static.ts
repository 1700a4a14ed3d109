/** Wrong actors of a job with a static policy, simulated by changed messages. */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { WorkNews } from "../../actors/dispatcher/protocol_heartbeats.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import { asksChanged, type Mutant, repliesChanged } from "./mutant.ts";

type Heartbeat = RequestOf<DispatcherProtocol, "workerHeartbeat">;

/** The mutants of this module. */
export const STATIC_MUTANTS: readonly Mutant[] = [
  {
    name: "neighbours-share",
    seed: 112,
    wrong: "a dispatcher that gives each worker its neighbour's share",
    workload: "static",
    install: () =>
      repliesChanged<WorkNews>(
        ({ newTasks }) => newTasks?.some(({ shard }) => shard !== undefined) ?? false,
        (body) => ({
          ...body,
          newTasks: body.newTasks.map((task) => ({
            ...task,
            shard: { ...task.shard!, index: (task.shard!.index + 1) % task.shard!.count },
          })),
        }),
      ),
  },
  {
    name: "share-made-too-early",
    wrong: "a worker that reports its share as complete when it starts",
    workload: "static",
    crashes: ["worker"],
    install: () =>
      asksChanged<Heartbeat>("workerHeartbeat", (body) => ({
        ...body,
        tasks: body.tasks.map((task) => ({ ...task, completed: true })),
      })),
  },
];
