/**
 * Restoring a DETERMINISTIC stream from a checkpoint: its cost does not depend on the position in
 * the stream.
 */
import type { ClientHome } from "../../actors/client/starting.ts";
import { dispatcherAt } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { Tensor } from "../../core/tensor.ts";
import { Dataset } from "../../data/dataset.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { decodeIteration, encodeIteration, identityOf } from "../../data/checkpoint/saving.ts";
import { SimCluster } from "../../sim/engine/cluster.ts";
import { bootDispatcher, bootWorker, DISPATCHER_NODE } from "../../sim/engine/service.ts";
// Registers the iterator of distribute().
import "../../sim/workloads/lib/reading.ts";
import { registerHome } from "../../platform/nodes/client_homes.ts";
import { assert, assertEquals } from "../assert.ts";

/** Cut into 977 splits of 4,096 elements, the maximum: 1,024 batches each. */
const ELEMENTS = 4_000_000;
const SPLIT_ELEMENTS = 4_096;
const BATCH = 4;
/** The filter leaves three rows of the first split over, which wait for the last batch of all. */
const MISSING = 5;
const WINDOW_SPLITS = 8;
const TOKEN_BYTES_MAX = 2_048;

/** 999,999 full batches in each of two epochs, and one of three rows. */
function makeStream(service: string) {
  return Dataset.range(ELEMENTS)
    .filter((x, { missing }) => x !== missing, { captures: { missing: MISSING } })
    .batch(BATCH)
    .distribute({ service, processingMode: "DETERMINISTIC" })
    .repeat(2)
    .node;
}

interface Seen {
  readonly first: readonly number[];
  readonly token: Uint8Array;
  /** Positions of the splits that the dispatcher assigned, ascending. */
  readonly splits: readonly number[];
  /** Number of answers with elements, remainders and ends of splits that reached the reader. */
  readonly answers: number;
}

let services = 0;

/** Reads some batches on a cluster of its own, optionally from a token, and saves. */
async function read(batches: number, from?: Uint8Array): Promise<Seen> {
  const cluster = new SimCluster({ seed: 1n });
  const splits = new Set<number>();
  let answers = 0;
  const watchDispatcher = (event: InspectionEvent) => {
    if (event.type !== "send" || event.envelope.kind !== "reply") return;
    const body = event.envelope.body as { readonly split?: { readonly sequence?: number } } | null;
    if (body?.split?.sequence !== undefined) splits.add(body.split.sequence);
  };
  const watchReader = (event: InspectionEvent) => {
    if (event.type !== "deliver" || event.envelope.kind !== "reply") return;
    if ((event.envelope.body as { readonly place?: unknown } | null)?.place) answers++;
  };
  const boot = bootDispatcher({ windowSplits: WINDOW_SPLITS });
  cluster.addNode(DISPATCHER_NODE, (node) => {
    node.system.inspect(watchDispatcher);
    boot(node);
  });
  for (const name of ["worker-1", "worker-2"]) cluster.addNode(name, bootWorker());
  const service = `restored-${++services}`;
  let outcome: Pick<Seen, "first" | "token"> | undefined;
  let failure: unknown;
  cluster.addNode("trainer", ({ system, host }) => {
    system.inspect(watchReader);
    const home: ClientHome = {
      system,
      dispatcher: dispatcherAt(DISPATCHER_NODE),
      timings: { refreshMs: 50, bufferBytesMax: 2_000 },
      release: () => {},
    };
    registerHome(service, () => home);
    const work = async () => {
      const iterator = openIterator<Tensor>(makeStream(service), { host });
      if (from !== undefined) await iterator.restore(from);
      const first: number[] = [];
      for (let i = 0; i < batches; i++) {
        first.push(...(await iterator.next()).value!.data as Float64Array);
      }
      outcome = { first, token: await iterator.save() };
      await iterator.return();
    };
    work().catch((error) => failure = error);
  });
  await cluster.run({
    until: () => outcome !== undefined || failure !== undefined,
    timeMaxMs: 60_000,
  });
  if (failure !== undefined) throw failure;
  return { ...outcome!, splits: [...splits].sort((a, b) => a - b), answers };
}

interface Place {
  readonly repetition: number;
  readonly sequence: number;
  readonly given: number;
}

/** The token of a reader at that position. */
function tokenAt({ repetition, sequence, given }: Place, real: Uint8Array): Uint8Array {
  const node = makeStream("anywhere");
  const saved = decodeIteration(identityOf(node), real);
  const state = saved.state as { readonly input: object };
  const carried = sequence === 0 ? [] : [{ sequence: 0, rows: (SPLIT_ELEMENTS - 1) % BATCH }];
  const input = { ...state.input, sequence, given, carried };
  return encodeIteration(identityOf(node), { ...saved, state: { ...state, repetition, input } });
}

const later = (numbers: readonly number[], first: number) => numbers.map((x) => x - first);

Deno.test("restoring deep in a DETERMINISTIC stream requests earlier splits only if their rows wait for a batch", async () => {
  // The constructed token equals a saved one.
  const perSplit = SPLIT_ELEMENTS / BATCH;
  const near = await read(perSplit - 1 + perSplit + 3);
  const place = { repetition: 0, sequence: 2, given: 3 };
  assertEquals(tokenAt(place, near.token), near.token);

  const shallow = await read(20, near.token);
  for (
    const { repetition, sequence } of [
      { repetition: 0, sequence: 960 },
      { repetition: 1, sequence: 2 },
      { repetition: 1, sequence: 960 },
    ]
  ) {
    const token = tokenAt({ ...place, repetition, sequence }, near.token);
    assert(token.length < TOKEN_BYTES_MAX, `${token.length} bytes`);
    const deep = await read(20, token);
    const first = sequence * SPLIT_ELEMENTS;
    assertEquals(deep.first[0], first + 3 * BATCH);
    // The work is the same as anywhere else: a window of splits, about as many answers.
    assertEquals(later(deep.first, first), later(shallow.first, 2 * SPLIT_ELEMENTS));
    assertWithinWindow(deep.splits, sequence);
    assert(deep.answers < 2 * shallow.answers, `${deep.answers} answers, not ${shallow.answers}`);
  }
  assertWithinWindow(shallow.splits, 2);
});

/**
 * The number of splits after the position depends on when the reader has received the earlier ones.
 */
function assertWithinWindow(splits: readonly number[], sequence: number): void {
  assert(splits.length >= 2 && splits.length <= WINDOW_SPLITS, `${splits}`);
  assertEquals(splits, [0, ...splits.slice(1).map((_, i) => sequence + i)]);
}
