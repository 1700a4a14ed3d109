/** What an iteration of several consumers keeps: no more than those that came have said. */
import { decodeRecords } from "../../../../actors/dispatcher/journal/records.ts";
import { QUOTAS } from "../../../../actors/dispatcher/jobs/quotas.ts";
import { openIteration } from "../../../../actors/dispatcher/jobs/join_iteration.ts";
import { awaitedCount } from "../../../../actors/dispatcher/modes/deterministic/consumers_state.ts";
import { noteReceived } from "../../../../actors/dispatcher/modes/deterministic/ordered.ts";
import {
  join,
  leave,
  orderedFrom,
} from "../../../../actors/dispatcher/modes/deterministic/ordered_state.ts";
import { has } from "../../../../actors/dispatcher/modes/deterministic/places.ts";
import { ANYONE } from "../../../../actors/runtime/identity.ts";
import { assert, assertEquals, assertGreater } from "../../../assert.ts";
import { ORDERED } from "./ordered_cluster.ts";
import { Decider } from "./ordered_commands.ts";

const FAR = 2 ** 24;
const MANY = 65_536;
const KEPT_MAX = 1_000;

Deno.test("a consumer that begins far from the beginning, with one split behind, keeps these places and not those between", () => {
  const start = { startAt: FAR, behind: [0] };
  const ordered = orderedFrom(start, MANY);
  for (let index = 0; index < 3; index++) join(ordered, index, start);
  assert(JSON.stringify(ordered).length < KEPT_MAX, "it lists what lies between");
  assertEquals([ordered.mark, ordered.next, ordered.lost], [0, FAR, [0]]);
  assertEquals(ordered.consumers!.reading[1], { mark: 0, done: [[1, FAR]] });
  // One that needs all of it is handed all of it.
  join(ordered, 3, { startAt: 0 });
  assertEquals(ordered.lost, [[0, FAR]]);
  assert(JSON.stringify(ordered).length < KEPT_MAX, "it lists what lies between");
});

Deno.test("what all of several consumers have is common to them also where they did not want it", () => {
  const ordered = orderedFrom({ startAt: FAR, behind: [0] }, 2);
  for (const index of [0, 1]) join(ordered, index, { startAt: FAR, behind: [0] });
  assertEquals([ordered.mark, ordered.done], [0, [[1, FAR]]]);
});

Deno.test("consumers that have not joined take no memory, and consecutive ones that have left take one entry", () => {
  const ordered = orderedFrom({ startAt: 0 }, MANY);
  assert(JSON.stringify(ordered).length < KEPT_MAX, "it lists the consumers");
  for (let index = 0; index < 100; index++) leave(ordered, [index]);
  assertEquals(ordered.consumers!.left, [[0, 100]]);
  assertEquals(awaitedCount(ordered.consumers!), MANY - 100);
});

Deno.test("what the consumers of an iteration keep counts for the owner of its job", () => {
  const decider = new Decider();
  const behind = Array.from({ length: 100 }, (_, i) => i * 20);
  const open = (consumerIndex: number) => {
    const before = decider.state.parameterBytesOf(ANYONE.name).own;
    openIteration(
      decider,
      {
        requestId: `r${consumerIndex}`,
        jobName: "job",
        parameters: { datasetId: "1", sharing: false, ...ORDERED, numConsumers: 3 },
        ...{ repetition: 0, consumerIndex, startAt: 2_000, behind, runId: "run" },
      },
      ANYONE,
      { positionOf: () => undefined, isUnreadable: () => false, isClosed: () => false },
    );
    return decider.state.parameterBytesOf(ANYONE.name).own - before;
  };
  open(0);
  assertGreater(open(1), behind.length * 64);
});

Deno.test("noteReceived journals each split once, however often its reader reports it", () => {
  for (const consumer of [{}, { numConsumers: 2, consumerIndex: 0 }]) {
    const { consumerIndex, ...more } = consumer as { consumerIndex?: number };
    const decider = new Decider();
    const behind = Array.from({ length: 100 }, (_, i) => i * 20);
    const { clientId, iterationId } = openIteration(
      decider,
      {
        requestId: "r",
        jobName: "job",
        parameters: { datasetId: "1", sharing: false, ...ORDERED, ...more },
        ...{ repetition: 0, startAt: 2_000, behind },
        ...(consumerIndex === undefined ? {} : { consumerIndex }),
      },
      ANYONE,
      { positionOf: () => undefined, isUnreadable: () => false, isClosed: () => false },
    );
    const client = decider.state.clients.get(clientId)!;
    const iteration = decider.state.iterations.get(iterationId)!;
    for (let count = 1; count <= behind.length; count++) {
      noteReceived(decider, iteration, client, { mark: 0, done: behind.slice(1, count) }, QUOTAS);
    }
    const journaled = decider.journal.flatMap(decodeRecords).flatMap((record) =>
      record.type === "sequences_received" ? record.done : []
    );
    assertEquals(journaled, behind.slice(1));
    const { done } = iteration.ordered!.consumers?.reading[0] ?? iteration.ordered!;
    assert(journaled.every((at) => has(done, at)));
  }
});

Deno.test("the splits that a consumer reports are bounded, and count for its job's owner until it is past them", () => {
  const decider = new Decider();
  /** A consumer that starts so far lets the others name all splits before. */
  const opened = [1_000_000, 0].map((startAt, consumerIndex) =>
    openIteration(
      decider,
      {
        requestId: `r${consumerIndex}`,
        jobName: "job",
        parameters: { datasetId: "1", sharing: false, ...ORDERED, numConsumers: 2 },
        ...{ repetition: 0, consumerIndex, startAt, runId: "run" },
      },
      ANYONE,
      { positionOf: () => undefined, isUnreadable: () => false, isClosed: () => false },
    )
  );
  const client = decider.state.clients.get(opened[1]!.clientId)!;
  const iteration = decider.state.iterations.get(client.iterationId)!;
  const held = () => decider.state.parameterBytesOf(ANYONE.name).own;
  const before = held();
  const quotas = { ...QUOTAS, parametersBytesMax: before + 20_000 };
  const records = decider.journal.length;
  for (let reports = 0; reports < 100; reports++) {
    const done = Array.from({ length: 1_000 }, (_, i) => 2_000 * reports + 2 * i + 1);
    noteReceived(decider, iteration, client, { mark: 0, done }, quotas);
  }
  assertEquals([held(), decider.journal.length], [before + 2_000 * 8, records + 2]);
  // What others keep refuses no report either.
  const ofAll = { ...QUOTAS, allParametersBytesMax: 1 };
  noteReceived(decider, iteration, client, { mark: 0, done: [5_001] }, ofAll);
  noteReceived(decider, iteration, client, { mark: 4_000, done: [] }, quotas);
  assertEquals(held(), before);
});
