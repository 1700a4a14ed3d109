/**
 * A client may send anything. Damaged frames, messages and requests must end neither dispatcher nor
 * worker, must not take their memory, and must not change an element of another client's job.
 */
import { hashJson } from "../../core/hash.ts";
import { Dataset } from "../../mod.ts";
import { datasetDefinition } from "../../actors/client/starting.ts";
import { SimRandom } from "../../sim/engine/random.ts";
import { mutateBytes } from "../../tools/fuzz/mutate_bytes.ts";
import { mutateTree } from "../../tools/fuzz/mutate_tree.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { writeAck, writeBatch } from "../../transport/web_socket/frames.ts";
import { writeHello } from "../../transport/hello.ts";
import { assert, assertEquals } from "../assert.ts";
import { type Part, soon, startDispatcher, startWorker } from "../cluster/lib.ts";
import { procFile } from "../lib/proc_file.ts";

/** Connections of the attacker to each of the two, and frames on each. */
const CONNECTIONS = 60;
const FRAMES = 30;
/** The memory limit of both programs, in KiB. */
const MEMORY_KIB_MAX = 1.5 * 2 ** 20;

const numbers = () => Dataset.range(4_000).shuffle(50, { seed: 1n }).map((x) => x * 3).batch(7);

/** Messages that a client might send to a node. None of them is about another client's job. */
function validMessages(node: string, path: string): Uint8Array[] {
  const source = { node: "attacker", path: "/client", incarnation: "1" };
  const { graph, fingerprint, cardinality } = datasetDefinition(
    Dataset.range(3).map((x) => x).node,
  );
  const requests: [method: string, body: unknown][] = [
    ["hello", null],
    ["describe", { refresh: true }],
    ["getDataset", { datasetId: "none" }],
    ["registerDataset", { graph, fingerprint, cardinality }],
    ["stats", null],
  ];
  return requests.map(([method, body], i) =>
    encodeMessage({
      ...{ kind: "ask", source, target: { node, path }, number: i + 1 },
      ...{ id: i + 1, timeoutMs: 1_000, open: [1], settledBelow: 0, method, body },
    })
  );
}

/** A valid frame with a few changes, in its bytes or its content. */
function hostileFrame(seeds: readonly Uint8Array[], random: SimRandom): Uint8Array {
  const seed = seeds[random.int(seeds.length)]!;
  const kind = random.int(4);
  if (kind === 0) return mutateBytes(seed, random, seeds);
  if (kind === 1) return mutateBytes(writeBatch([seed, seed]), random, seeds);
  if (kind === 2) return mutateBytes(writeAck(random.int(1_000)), random, seeds);
  try {
    return encodeMessage(mutateTree(decodeMessage(seed), random));
  } catch {
    return seed;
  }
}

/** One connection: a hello, sometimes a wrong one, and frames until the other side closes. */
async function attackOnce(address: string, path: string, random: SimRandom): Promise<void> {
  const socket = new WebSocket(address);
  const closed = new Promise<void>((resolve) => socket.onclose = () => resolve());
  socket.onerror = (event) => event.preventDefault();
  const opened = new Promise<void>((resolve) => socket.onopen = () => resolve());
  const heard = new Promise<void>((resolve) => socket.onmessage = () => resolve());
  await Promise.race([opened, closed]);
  const seeds = validMessages(address, path);
  const hello = writeHello({
    ...{ role: "dialler", node: `attacker-${random.hex64()}`, incarnation: "1" },
    messageBytesMax: 1 << 20,
  });
  const send = (bytes: Uint8Array) => {
    if (socket.readyState === WebSocket.OPEN) socket.send(bytes.slice());
  };
  send(random.chance(0.2) ? mutateBytes(hello, random, [hello]) : hello);
  await Promise.race([heard, closed]);
  for (let i = 0; i < FRAMES; i++) send(hostileFrame(seeds, random));
  socket.close();
  await closed;
}

async function attack(address: string, path: string, seed: bigint): Promise<void> {
  const random = new SimRandom(seed);
  for (let i = 0; i < CONNECTIONS; i++) await attackOnce(address, path, random.fork(String(i)));
}

/** A digest of all elements in their order. */
async function hashOf(dataset: Dataset<{ readonly data: ArrayLike<unknown> }>): Promise<string> {
  const all = await Array.fromAsync(dataset, ({ data }) => Array.from(data));
  return hashJson(all);
}

/** The peak memory of a process. Only Linux reports it. */
async function peakKib({ child }: Part): Promise<number> {
  if (Deno.build.os !== "linux") return 0;
  const status = await procFile(child.pid, "status");
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1] ?? 0);
}

Deno.test("damaged frames end neither dispatcher nor worker, and change no element of a job", async () => {
  await using dispatcher = await startDispatcher();
  await using worker = await startWorker(dispatcher.address);
  await dispatcher.child.line(/1 of 1 worker alive/);
  const stream = () =>
    numbers().distribute({ service: dispatcher.address, processingMode: "DETERMINISTIC" });
  const wanted = await soon("a job before the attack", hashOf(stream()));
  const read = hashOf(stream());
  await soon(
    "the attack",
    Promise.all([
      attack(dispatcher.address, "/dispatcher", 1n),
      attack(worker.address, "/worker", 2n),
    ]),
  );
  assertEquals(await soon("the job", read), wanted);
  assertEquals(await soon("a job after the attack", hashOf(stream())), wanted);
  for (const part of [dispatcher, worker]) {
    assertEquals(/^error: /m.test(part.child.stderr.text), false, part.child.stderr.text);
    const peak = await peakKib(part);
    const isKnown = peak > 0 || Deno.build.os !== "linux";
    assert(isKnown && peak < MEMORY_KIB_MAX, `${peak} KiB`);
  }
});
