/** Which roles may call workers and sources. A dispatcher that a worker has dialled has the role admin. */
import type { Access } from "../runtime/access.ts";
import type {
  CacheProtocol,
  ElementGiverProtocol,
  ElementReaderProtocol,
  ElementSourceProtocol,
  ProxyProtocol,
  RoundSourceProtocol,
  WorkerProtocol,
} from "./protocol.ts";

export const workerAccess: Access<WorkerProtocol> = {
  listSplits: [],
  beginSave: [],
  drain: [],
  leave: [],
  wake: [],
  nameWanted: [],
};

/** A cache or scheduler on another node reads as a client does. */
const READERS = ["client", "worker"] as const;

/** What clients ask of any source. */
export const elementSourceAccess: Access<ElementSourceProtocol> = {
  getElement: READERS,
  leave: READERS,
  stats: READERS,
};

export const elementReaderAccess: Access<ElementReaderProtocol> = { askAgain: ["worker"] };

/** What tasks ask of readers whose elements they prepare. */
export const elementGiverAccess: Access<ElementGiverProtocol> = { readSource: ["worker"] };

const proxyAccess: Access<ProxyProtocol> = {
  ...elementSourceAccess,
  ...elementReaderAccess,
  isRead: ["worker"],
  haveAllLeft: ["worker"],
};

export const cacheAccess: Access<CacheProtocol> = {
  ...proxyAccess,
  resize: ["worker"],
};

/** Coordinated reads: the scheduler of a task. */
export const roundSourceAccess: Access<RoundSourceProtocol> = {
  ...proxyAccess,
  confirm: READERS,
};
