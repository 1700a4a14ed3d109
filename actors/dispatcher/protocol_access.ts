/** Which roles may send which requests to the dispatcher. */
import type { Access } from "../runtime/access.ts";
import type { DispatcherProtocol } from "./protocol.ts";

/** A worker is a client, too, if a pipeline on it reads from this service. */
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
