/**
 * Heartbeat intervals and timeouts of the service's actors in a run. Most runs have quick timings, so
 * that much happens. They are so short that living nodes are declared lost. The other runs have the
 * timings of production, in which a lost notification delays the next step by half a minute.
 */
import type { ClientOptions } from "../../actors/client/client.ts";
import type { DispatcherConfig } from "../../actors/dispatcher/config.ts";
import type { SimCluster } from "./cluster.ts";
import type { SimRandom } from "./random.ts";
import type { WorkerSettings } from "./service.ts";

const PRODUCTION_PROBABILITY = 1 / 4;

/** Longer than any fault, because a client that rightly timed out would prove nothing. */
export const FIRST_ANSWER_TIMEOUT_MS = 60_000;

/** The timings of each kind of actor. Omitted timings are those of production. */
export interface ServiceTimings {
  /** Whether all are those of production, so that no living node is declared lost. */
  readonly areOfProduction: boolean;
  readonly dispatcher: Pick<
    DispatcherConfig,
    "workerTimeoutMs" | "clientTimeoutMs" | "clientGraceMs" | "lostTaskTimeoutMs" | "scaling"
  >;
  readonly worker: Pick<WorkerSettings, "heartbeatMs" | "skipAfterMs">;
  readonly client: Pick<ClientOptions, "refreshMs" | "requestTimeoutMs" | "firstAnswerTimeoutMs">;
}

type QuickTimings = Partial<Omit<ServiceTimings, "areOfProduction">>;

/** Draws either the workload's quick timings or those of production. */
export function drawTimings(cluster: SimCluster, quick: QuickTimings): ServiceTimings {
  const areOfProduction = cluster.random.fork("timings of production").chance(
    PRODUCTION_PROBABILITY,
  );
  if (areOfProduction) cluster.counters.tally("timings_of_production");
  const { dispatcher = {}, worker = {}, client = {} } = areOfProduction ? {} : quick;
  const firstAnswerTimeoutMs = FIRST_ANSWER_TIMEOUT_MS;
  return { areOfProduction, dispatcher, worker, client: { firstAnswerTimeoutMs, ...client } };
}

const WORKER_TIMEOUT_MS: [number, ...number[]] = [1_000, 10_000];
const CLIENT_GRACE_MS: [number, ...number[]] = [300, 2_000];

/**
 * Draws timings for DETERMINISTIC streams. The quick timings are so short that living workers are
 * declared lost.
 */
export function drawStreamTimings(cluster: SimCluster, rng: SimRandom): ServiceTimings {
  return drawTimings(cluster, {
    dispatcher: {
      workerTimeoutMs: rng.pick(WORKER_TIMEOUT_MS),
      clientTimeoutMs: 5_000,
      clientGraceMs: cluster.random.fork("grace").pick(CLIENT_GRACE_MS),
    },
    worker: { heartbeatMs: 300 },
    client: { refreshMs: 200, requestTimeoutMs: 1_000 },
  });
}
