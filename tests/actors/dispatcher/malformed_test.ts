/** Requests of another shape than a method's: they are refused by name, and harm nobody. */
import { dispatcherChecks } from "../../../actors/dispatcher/protocol_check.ts";
import { LeatError } from "../../../core/error.ts";
import { ShardingPolicy } from "../../../data/sharding/sharding_policy.ts";
import { assert, assertEquals } from "../../assert.ts";
import { refusalOf } from "../lib/refusal.ts";
import { settle, TestCluster } from "./lib.ts";
import { fill, type Method } from "./requests.ts";
import fc from "../../lib/properties.ts";

const RUNS = 10;
const REQUESTS_PER_RUN = 30;

/** What a field may be instead of what it is. Left out: it is not there. */
const OTHERS = [undefined, null, true, -1, 0.5, NaN, 2 ** 60, "text", "\ud800", {}, [], [null]];

Deno.test("a request of another shape is answered with invalid_argument, the method, the place and what was found", async () => {
  await using cluster = await TestCluster.start();
  const datasetId = await cluster.dataset();
  const { parameters } = cluster.openRequest(datasetId);
  const open = { requestId: "r", repetition: 0 };
  const cases: [Method, unknown, string][] = [
    ["releaseClient", null, "releaseClient: the request must be an object, got null"],
    ["releaseClient", {}, "releaseClient: clientId is missing"],
    [
      "openIteration",
      { ...open, parameters: { ...parameters, targetTags: {} } },
      "openIteration: parameters.targetTags must be a list, got Object",
    ],
    [
      "openIteration",
      { ...open, parameters: { ...parameters, processingMode: "SOME" } },
      `openIteration: parameters.processingMode must be one of ${
        [...Object.keys(ShardingPolicy), "CUSTOM"].join(", ")
      }, got "SOME"`,
    ],
    [
      "clientHeartbeat",
      { clientId: 1, report: { kind: "rounds", lostTasks: [{ taskId: 1 }, { taskId: "2" }] } },
      'clientHeartbeat: report.lostTasks.1.taskId must be a count from 0, got "2"',
    ],
    [
      "getDataset",
      { datasetId: "\ud800" },
      'getDataset: datasetId must be a text of at most 1024 characters, got "\ufffd"',
    ],
    [
      "registerDataset",
      { graph: [1, 2], fingerprint: "f", cardinality: 1 },
      "registerDataset: graph must be bytes, got Array",
    ],
  ];
  for (const [method, request, message] of cases) {
    const error = await cluster.refused(method, request as never);
    assertEquals([error.code, error.message], ["invalid_argument", message]);
  }
});

Deno.test("fields that a method does not know are let be, but among the parameters of a job, which are kept", async () => {
  await using cluster = await TestCluster.start();
  const requests = await fill(cluster);
  for (const [method, request] of Object.entries(requests)) {
    const more = grown(request);
    const kept = method === "openIteration"
      ? { ...more as object, parameters: requests.openIteration.parameters }
      : more;
    assertEquals(refusalOf(dispatcherChecks[method as Method], kept), undefined, method);
  }
  const { code } = refusalOf(
    dispatcherChecks.openIteration,
    grown(requests.openIteration),
  )!;
  assertEquals(code, "invalid_argument");
});

Deno.test("dispatcherChecks accept the positions of more splits than other lists have items", async () => {
  await using cluster = await TestCluster.start();
  const { openIteration } = await fill(cluster);
  const places = Array.from({ length: 100_000 }, (_, i) => i);
  const opening = { ...openIteration, startAt: places.length, behind: places };
  assertEquals(refusalOf(dispatcherChecks.openIteration, opening), undefined);
  const report = { kind: "ordered", mark: 0, done: places };
  const heartbeat = { clientId: 1, report };
  assertEquals(refusalOf(dispatcherChecks.clientHeartbeat, heartbeat), undefined);
});

Deno.test("a dataset that is repeated beyond what can be counted by ones is registered", () => {
  for (const cardinality of [10 * Number.MAX_SAFE_INTEGER, 0, -1, -2]) {
    const request = { graph: Uint8Array.of(1), fingerprint: "f", cardinality };
    assertEquals(refusalOf(dispatcherChecks.registerDataset, request), undefined, `${cardinality}`);
  }
});

Deno.test("requests with something dropped or of another type never end a dispatcher, and its journal replays", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(mutation(), { minLength: REQUESTS_PER_RUN, maxLength: REQUESTS_PER_RUN }),
      async (mutations) => {
        await using cluster = await TestCluster.start();
        const requests = await fill(cluster);
        for (const { method, at, other } of mutations) {
          const request = mutated(requests[method], at, other);
          const isWrong = refusalOf(dispatcherChecks[method], request) !== undefined;
          // A split that there is not yet is waited for.
          const asked = cluster.ask(method, request as never).then(() => "answered", (error) => {
            return LeatError.from(error).code;
          });
          const outcome = await Promise.race([asked, settle().then(() => "waits")]);
          assert(outcome !== "internal", `${method} ${JSON.stringify(request)}`);
          if (isWrong) assertEquals(outcome, "invalid_argument");
        }
        // One that had died would be there again.
        await cluster.world.advance(1_000);
        assertEquals((await cluster.ask("hello", null)).life, 1, "it has not died");
        await cluster.restart();
        assertEquals((await cluster.ask("hello", null)).life, 2, "it replays");
        // Whoever comes is served as if nothing had been.
        await cluster.open(await cluster.dataset("another"), { processingMode: "OFF" });
        assertEquals((await cluster.worker("late").heartbeat()).length > 0, true);
      },
    ),
    { numRuns: RUNS },
  );
});

interface Mutation {
  readonly method: Method;
  /** Chooses a place within the request. */
  readonly at: number;
  readonly other: unknown;
}

function mutation(): fc.Arbitrary<Mutation> {
  const methods = Object.keys(dispatcherChecks) as Method[];
  return fc.record({
    method: fc.constantFrom(...methods),
    at: fc.nat(),
    other: fc.constantFrom(...OTHERS),
  });
}

/** A copy of a request with another value in one place, or without that. */
function mutated(request: unknown, at: number, other: unknown): unknown {
  const copy = structuredClone(request);
  const places = placesIn(copy);
  const place = places[at % (places.length + 1)];
  if (place === undefined) return other ?? null;
  const [within, key] = place;
  if (other === undefined) delete within[key];
  else within[key] = other;
  return copy;
}

type Fields = Record<string, unknown>;

function placesIn(value: unknown): [Fields, string][] {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return [];
  return Object.entries(value).flatMap(([key, item]) => [
    [value as Fields, key] as [Fields, string],
    ...placesIn(item),
  ]);
}

/** A copy in which every object has one field more. */
function grown(value: unknown): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (Array.isArray(value)) return value.map(grown);
  const entries = Object.entries(value).map(([key, item]) => [key, grown(item)]);
  return { ...Object.fromEntries(entries), ofALaterVersion: [1, "2"] };
}
