/** Who may send which request to the dispatcher. */
import type { Access } from "../runtime/access.ts";
import type { DispatcherProtocol } from "./protocol.ts";

/** A pipeline on a worker may read from this service: then the worker is a client, too. */
const READERS = ["client", "worker"] as const;

export const dispatcherAccess: Access<DispatcherProtocol> = {
  hello: ["viewer", ...READERS],
  registerDataset: READERS,
  getDataset: READERS,
  openIteration: READERS,
  clientHeartbeat: READERS,
  releaseClient: READERS,
  workerHeartbeat: ["worker"],
  getSplit: ["worker"],
  getSaveWork: ["worker"],
  runnerDied: ["worker"],
  describe: ["worker", "viewer"],
};
