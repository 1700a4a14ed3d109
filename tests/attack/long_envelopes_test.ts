/**
 * A client, viewer or worker that sends a message with a long envelope, or with much structure in its
 * payloads. Decoded, such a message could take many times its size and end the process.
 */
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import { ActorSystem } from "../../actors/runtime/system.ts";
import { workerAt } from "../../actors/worker/protocol.ts";
import type { RunnerFactory } from "../../actors/worker/runner/runner.ts";
import { SaveBeginnings } from "../../actors/worker/tasks/begin_save.ts";
import { Dataset, serveDispatcher, serveWorker } from "../../mod.ts";
import { DenoWorld } from "../../platform/deno_world.ts";
import { Tensor } from "../../core/tensor.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { STRUCTURE_PER_ENVELOPE_BYTE } from "../../transport/limits.ts";
import { ENVELOPE_BYTES_MAX } from "../../transport/web_socket/envelope_limits.ts";
import { packSplits } from "../../data/sharding/split_table.ts";
import { webSocketConnector } from "../../transport/web_socket.ts";
import { rejection } from "../actors/runtime/nodes.ts";
import { assert, assertEquals, assertStringIncludes } from "../assert.ts";
import { until } from "../lib/until.ts";

const QUIET = { logLevel: "off" } as const;
const PATIENCE = { timeoutMs: 60_000 };
const LONG = "x".repeat(5 * 2 ** 20);
const LONGER = "x".repeat(17 * 2 ** 20);

const NODE = { name: "node", role: "worker", token: "token-of-node-0123" } as const;
const TEAM = { name: "team", role: "client", token: "token-of-team-0123" } as const;
const EYES = { name: "eyes", role: "viewer", token: "token-of-eyes-0123" } as const;

/** A node with a token of its own. */
function nodeWith(token: string, target: "service" | "node"): ActorSystem {
  const world = new DenoWorld(QUIET);
  const identity = { name: "whoever answers", role: "admin" } as const;
  const connector = webSocketConnector({ world, credentials: () => ({ token, target, identity }) });
  return new ActorSystem({ node: "attacker", world, connector });
}

Deno.test("an envelope of megabytes from a client, viewer or worker is refused before it is decoded", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [NODE, TEAM, EYES] });
  const service = dispatcher.address;
  await using worker = await serveWorker({
    ...{ ...QUIET, dispatcher: service, name: "node", heartbeatMs: 50 },
    ...{ token: NODE.token, tokens: [TEAM] },
  });
  await until(async () => (await dispatcher.describe()).workers.length === 1, 10);
  const long = [[TEAM, LONG, "An envelope of 52"], [EYES, LONG, "An envelope of 52"]] as const;
  for (
    const [{ token }, datasetId, text] of [...long, [NODE, LONGER, "An envelope of 178"] as const]
  ) {
    await using system = nodeWith(token, "service");
    const asked = system.ask(dispatcherAt(service), "getDataset", { datasetId }, PATIENCE);
    assertStringIncludes((await rejection(asked, "unavailable")).message, text);
  }
  await using system = nodeWith(TEAM.token, "node");
  const asked = system.ask(workerAt(worker.address), "drain", LONG as never, PATIENCE);
  assertStringIncludes((await rejection(asked, "unavailable")).message, "An envelope of 52");

  // A pipeline of that size is a payload: it is taken, and read.
  const elements = [new Uint8Array(5 * 2 ** 20)];
  const read = Dataset.from(elements).distribute({ service, token: TEAM.token });
  assertEquals(await Array.fromAsync(read, ({ length }) => length), [5 * 2 ** 20]);
});

Deno.test("a small envelope is refused if its payloads would become millions of values", async () => {
  await using dispatcher = await serveDispatcher({ ...QUIET, tokens: [NODE, TEAM, EYES] });
  const service = dispatcher.address;
  const empty = { bytes: new Uint8Array(0), string: "" } as const;
  for (const { token } of [NODE, TEAM, EYES]) {
    for (const dtype of ["bytes", "string"] as const) {
      const datasetId = new Tensor(dtype, [9e6], Array(9e6).fill(empty[dtype]));
      await using system = nodeWith(token, "service");
      const request = { datasetId: datasetId as never };
      const asked = system.ask(dispatcherAt(service), "getDataset", request, PATIENCE);
      assertStringIncludes((await rejection(asked, "unavailable")).message, "more structure");
    }
  }
});

Deno.test("a heartbeat with ten thousand tasks has less structure than a link allows", () => {
  const figures = Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`figure${i}`, i]));
  const ref = { node: "ws://worker.example:1234", path: "/worker/task-1", incarnation: "0-1" };
  const task = { taskId: 1, source: ref, completed: false, figures };
  const frame = encodeMessage({ kind: "ask", body: { tasks: Array(10_000).fill(task) } });
  assert(frame.length < ENVELOPE_BYTES_MAX.worker);
  const structureBytesMax = STRUCTURE_PER_ENVELOPE_BYTE * ENVELOPE_BYTES_MAX.worker;
  decodeMessage(frame, { structureBytesMax });
});

Deno.test("splits that a worker lists or begins to save are no long envelope, which would close its link", async () => {
  const table = [Array.from({ length: 100_000 }, (_, i) => ({ start: i, stop: i + 1 }))];
  const progress = { id: "1", entries: 0, upTo: 0, runs: [], elements: 0, sizeBytes: 0 };
  const begun = encodeMessage({ ...progress, bounds: packSplits(table) });
  const saves = new SaveBeginnings(new DenoWorld(QUIET), runnersThatAnswer(begun));
  const dataset = { datasetId: "1", fingerprint: "f", cardinality: -1, graph: new Uint8Array() };
  const request = { dataset, save: {} as never, seed: "7", owner: "team", saveName: "it" };
  const save = await saves.begin(request, Infinity);
  for (const body of [{ bounds: packSplits(table) }, save]) {
    const frame = encodeMessage({ kind: "reply", body });
    const envelopeBytes = new DataView(frame.buffer, frame.byteOffset).getUint32(1);
    assert(envelopeBytes < 1_024, `${envelopeBytes} bytes`);
  }
});

/** Runners whose only element is this frame. */
function runnersThatAnswer(frame: Uint8Array): RunnerFactory {
  const next = () => Promise.resolve({ kind: "element" as const, frame });
  return { start: () => ({ next, bytesRead: 0, dispose: () => {} }) } as Partial<
    RunnerFactory
  > as RunnerFactory;
}
