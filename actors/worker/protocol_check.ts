/** Checks the shapes of requests to workers and element sources. */
import { datasetFields, saveSettings } from "../dispatcher/protocol_check.ts";
import {
  checksOf,
  count,
  duration,
  figure,
  flag,
  ignored,
  list,
  name,
  nothing,
  object,
  optional,
  text,
  whole,
} from "../runtime/checks.ts";
import type {
  CacheProtocol,
  ElementGiverProtocol,
  ElementSourceProtocol,
  RoundSourceProtocol,
  WorkerProtocol,
} from "./protocol.ts";

const dataset = object({ datasetId: name, ...datasetFields });

export const workerChecks = checksOf<WorkerProtocol>()({
  listSplits: object({ dataset, owner: name }),
  beginSave: object({ dataset, save: saveSettings, seed: name, owner: name, saveName: name }),
  drain: object({ timeoutMs: figure }),
  leave: nothing,
  wake: nothing,
  nameWanted: object({ by: text }),
});

/** A client's number; caches and schedulers, which have none, use numbers below 0. */
const clientId = whole;

const elementSource = {
  getElement: object({
    clientId,
    sequence: count,
    acknowledged: count,
    patient: optional(flag),
    trainerId: optional(name),
    consumerIndex: optional(count),
    round: optional(count),
    floor: optional(count),
    absent: optional(list(count)),
    upTo: optional(count),
    own: optional(object({ sequence: count, number: count })),
    waitMs: optional(duration),
    bandwidth: optional(object({
      bytesPerSecond: figure,
      unpackBytesPerSecond: optional(figure),
      waitingShare: figure,
    })),
  }),
  leave: object({ clientId, consumers: optional(list(count)) }),
  stats: nothing,
};

/** What clients ask of any source. */
export const elementSourceChecks = checksOf<ElementSourceProtocol>()(elementSource);

/** Requests to a task: those of clients, and `drain` of its worker, without a body. */
export const taskChecks = { ...elementSourceChecks, drain: ignored };

/** What tasks ask of readers whose elements they prepare. */
export const elementGiverChecks = checksOf<ElementGiverProtocol>()({
  readSource: object({ split: count, from: count }),
});

/** Sharing: the same, plus requests of the task and the worker. */
export const cacheChecks = checksOf<CacheProtocol>()({
  ...elementSource,
  askAgain: nothing,
  isRead: nothing,
  haveAllLeft: nothing,
  resize: object({ windowBytesMax: figure }),
});

/** Coordinated reads: the same, plus requests of the task and the consumers. */
export const roundSourceChecks = checksOf<RoundSourceProtocol>()({
  ...elementSource,
  askAgain: nothing,
  isRead: nothing,
  haveAllLeft: nothing,
  confirm: object({ consumerIndex: count, round: count, absent: optional(list(count)) }),
});
