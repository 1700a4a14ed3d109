/**
 * Who may ask the dispatcher for what.
 *
 * @module
 */
import type { Access } from "../runtime/access.ts";
import type { DispatcherProtocol } from "./protocol.ts";

/** A pipeline on a worker may begin with this very service: then the worker is a client, too. */
const READERS = ["client", "worker"] as const;

/** See the module. */
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
