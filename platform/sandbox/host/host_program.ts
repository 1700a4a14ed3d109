/** The program of a host process, which serves one confined runner and runs no user code. */
import { LeatError } from "../../../core/error.ts";
import { decodingThreads } from "../../media/jpeg/decoding_threads.ts";
import type { WorkerStorage } from "../../storage/storage.ts";
import { workerHost } from "../../deno_host.ts";
import { linkToParent, localNode } from "../../process/parent_link.ts";
import { Edge } from "../edge.ts";
import { FarRoots } from "./far_roots.ts";
import type { ReachedByHost } from "../grants.ts";
import { HostReadings } from "./host_readings.ts";
import { HOST_METHODS, type HostMethod, HostService } from "./host_service.ts";

export interface HostStart extends ReachedByHost {
  readonly storage: WorkerStorage;
  /** Limit of the memory of this process, in bytes. */
  readonly memoryBytesMax: number;
}

let service: HostService | undefined;

const served = (method: HostMethod) => (args: unknown) => {
  if (service !== undefined) return service.methods()[method](args);
  throw new LeatError(
    "failed_precondition",
    `The host got the request ${method} before it was started`,
  );
};

const edge = new Edge(linkToParent(), localNode(), {
  start(start) {
    const { far, net, storage, memoryBytesMax } = start as HostStart;
    decodingThreads.fit(memoryBytesMax);
    const roots = new FarRoots(far);
    // A server below a root must not redirect this process out of the roots.
    const host = workerHost(storage, { mayFollow: (target) => roots.has(target) });
    service = new HostService(host, roots, new HostReadings(net, storage.services));
    return null;
  },
  ...Object.fromEntries(HOST_METHODS.map((method) => [method, served(method)])),
});
// The worker has closed the link, or has ended.
await edge.closed;
Deno.exit();
