/** Requests to a dispatcher that has workers, jobs and clients. */
import type { DispatcherProtocol } from "../../../actors/dispatcher/protocol.ts";
import { dispatcherChecks } from "../../../actors/dispatcher/protocol_check.ts";
import type { MethodOf } from "../../../actors/runtime/protocol.ts";
import {
  cacheChecks,
  elementSourceChecks,
  roundSourceChecks,
  workerChecks,
} from "../../../actors/worker/protocol_check.ts";
import { LeatError } from "../../../core/error.ts";
import { settle, TestCluster } from "../../../tests/actors/dispatcher/lib.ts";
import { fill } from "../../../tests/actors/dispatcher/requests.ts";
import { refusalOf } from "../../../tests/actors/lib/refusal.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { mutateMessage } from "../mutate_tree.ts";
import type { Target } from "../target.ts";

type Method = MethodOf<DispatcherProtocol>;
type Asked = readonly [method: string, request: unknown];
type Check = (request: unknown) => unknown;

/** Returns the requests of an input. Any other input is refused. */
function requestsIn(input: Uint8Array): Asked[] {
  const list = decodeMessage(input);
  if (!Array.isArray(list)) throw new LeatError("invalid_argument", "no list of requests");
  return list.filter((item): item is [string, unknown] =>
    Array.isArray(item) && typeof item[0] === "string"
  );
}

/**
 * Sends requests to a new dispatcher in order. It must survive, answer with known errors, and its
 * journal must replay.
 */
async function ask(input: Uint8Array): Promise<void> {
  const requests = requestsIn(input);
  await using cluster = await TestCluster.start();
  await fill(cluster);
  for (const [method, request] of requests) {
    if (!Object.hasOwn(dispatcherChecks, method)) continue;
    const refusal = refusalOf(dispatcherChecks[method as Method], request);
    const answer = cluster.ask(method as Method, request as never).then(
      () => "answered",
      (error) => LeatError.from(error).code,
    );
    const outcome = await Promise.race([answer, settle().then(() => "waits")]);
    if (outcome === "internal" || outcome === "unknown") {
      throw new Error(`${method} was answered with ${outcome}`);
    }
    if (refusal !== undefined && outcome === "answered") {
      throw new Error(`${method} was answered, but does not pass its check`);
    }
  }
  await cluster.world.advance(1_000);
  if ((await cluster.ask("hello", null)).life !== 1) throw new Error("the dispatcher has died");
  await cluster.restart();
  if ((await cluster.ask("hello", null)).life !== 2) throw new Error("the journal does not replay");
}

async function validRequests(): Promise<Asked[]> {
  await using cluster = await TestCluster.start();
  return Object.entries(await fill(cluster));
}

const ELEMENT_REQUESTS = {
  getElement: {
    ...{ clientId: 1, sequence: 3, acknowledged: 2, trainerId: "t", consumerIndex: 0, round: 1 },
    ...{ floor: 1, absent: [1], upTo: 9, own: { sequence: 1, number: 2 }, waitMs: 5 },
    bandwidth: { bytesPerSecond: 1, unpackBytesPerSecond: 2, waitingShare: 0.5 },
  },
  leave: { clientId: 1, consumerIndex: 0 },
  confirm: { consumerIndex: 0, round: 1, absent: [2] },
  resize: { windowBytesMax: 1_000 },
  drain: { timeoutMs: 5 },
  nameWanted: { by: "w" },
};
const CHECKS: readonly Readonly<Record<string, Check>>[] = [
  elementSourceChecks,
  cacheChecks,
  roundSourceChecks,
  workerChecks,
];

/** Targets that read requests. */
export const REQUEST_TARGETS: Readonly<Record<string, Target>> = {
  dispatcher: {
    help: "requests to a dispatcher that has jobs, workers and clients",
    open: async () => {
      const all = await validRequests();
      const [first, ...others] = all.map((request) => encodeMessage([request]));
      return { seeds: [first!, ...others, encodeMessage(all)], mutate: mutateMessage, run: ask };
    },
  },
  worker: {
    help: "the checks of requests to workers, tasks, caches and schedulers",
    open: () => ({
      seeds: [encodeMessage(Object.entries(ELEMENT_REQUESTS))],
      mutate: mutateMessage,
      run(input) {
        for (const [method, request] of requestsIn(input)) {
          for (const checks of CHECKS) {
            if (Object.hasOwn(checks, method)) refusalOf(checks[method]!, request);
          }
        }
      },
    }),
  },
};
