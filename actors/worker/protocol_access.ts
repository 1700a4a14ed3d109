/**
 * Who may ask workers, and what stands before their tasks, for what. The dispatcher is an admin to a
 * worker that has dialled it.
 *
 * @module
 */
import type { Access } from "../runtime/access.ts";
import type {
  CacheProtocol,
  ElementReaderProtocol,
  ElementSourceProtocol,
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

/** A cache or a scheduler on another node reads as a client does. */
const READERS = ["client", "worker"] as const;

/** What clients ask of any source. */
export const elementSourceAccess: Access<ElementSourceProtocol> = {
  getElement: READERS,
  leave: READERS,
  stats: READERS,
};

/** What tasks ask of those who read them. */
export const elementReaderAccess: Access<ElementReaderProtocol> = { askAgain: ["worker"] };

/** Sharing: the cache before a task. */
export const cacheAccess: Access<CacheProtocol> = {
  ...elementSourceAccess,
  ...elementReaderAccess,
  resize: ["worker"],
};

/** Coordinated reads: the scheduler before a task. */
export const roundSourceAccess: Access<RoundSourceProtocol> = {
  ...elementSourceAccess,
  ...elementReaderAccess,
  confirm: READERS,
};
