/** The program of a host process, which serves one confined runner and runs no user code. */
import type { ReadingTask } from "../../../data/service/reading_task.ts";
import { decodingThreads } from "../../media/jpeg/decoding_threads.ts";
import type { WorkerStorage } from "../../storage/storage.ts";
import { workerHost } from "../../deno_host.ts";
import { linkToParent, localNode } from "../../process/parent_link.ts";
import { Edge } from "../edge.ts";
import { FarRoots } from "./far_roots.ts";
import type { ReachedByHost } from "../grants.ts";
import { HostReadings } from "./host_readings.ts";
import { HostService } from "./host_service.ts";

export interface HostStart extends ReachedByHost {
  readonly storage: WorkerStorage;
  /** Limit of the memory of this process, in bytes. */
  readonly memoryBytesMax: number;
}

let service: HostService | undefined;
let readings: HostReadings | undefined;

const edge = new Edge(linkToParent(), localNode(), {
  start(start) {
    const { far, net, storage, memoryBytesMax } = start as HostStart;
    decodingThreads.fit(memoryBytesMax);
    const roots = new FarRoots(far);
    // A server below a root must not redirect this process out of the roots.
    const host = workerHost(storage, { mayFollow: (target) => roots.has(target) });
    readings = new HostReadings(net, storage.services);
    service = new HostService(host, roots, readings);
    return null;
  },
  assign(task) {
    readings!.forTask = task as ReadingTask;
    return null;
  },
  // The runner, which is not trusted, chooses the method: it reaches only those of the service.
  serve: (request) => service!.answer(request),
});
// The worker has closed the link, or has ended.
await edge.closed;
Deno.exit();
