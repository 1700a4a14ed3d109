/**
 * Journals and checkpoints written by an earlier commit, read by the current code. `write.ts`
 * writes them again when a format changes on purpose.
 */
import { CHANGES } from "../../actors/dispatcher/state/record_changes.ts";
import { decodeRecords } from "../../actors/dispatcher/journal/records.ts";
import { decodeSnapshot, encodeSnapshot } from "../../actors/dispatcher/journal/snapshot.ts";
import type { LogContents } from "../../actors/runtime/durable_log.ts";
import { decodeIteration, encodeIteration, identityOf } from "../../data/checkpoint/saving.ts";
import { DispatcherState } from "../../actors/dispatcher/state/state.ts";
import { openSqliteLog } from "../../platform/journal/sqlite_log.ts";
import { assertEquals } from "../assert.ts";
import { ELEMENTS_MAX, open, PIPELINES, prepared } from "../data/lib/checkpoint_pipelines.ts";
import { outcomesOf } from "../data/lib/outcomes.ts";
import { TempFolder } from "../lib/temp_folder.ts";
import { describe } from "../transport/vectors/cases.ts";
import { type Checkpoint, makeCheckpoints } from "./checkpoints.ts";
import { encodeRecords, type JournalFixture, replayed, typesOf } from "./journals.ts";

const here = (name: string) => new URL(name, import.meta.url);
const journals: JournalFixture[] = JSON.parse(await Deno.readTextFile(here("journals.json")));
const checkpoints: Checkpoint[] = JSON.parse(await Deno.readTextFile(here("checkpoints.json")));

function contentsOf({ snapshot, records }: JournalFixture): LogContents {
  return {
    snapshot: snapshot === null ? undefined : Uint8Array.fromBase64(snapshot),
    records: records.map((record) => Uint8Array.fromBase64(record)),
  };
}

Deno.test("the kept journals hold every type of record that is written, and a snapshot", () => {
  const seen = new Set(journals.flatMap((journal) => [...typesOf(contentsOf(journal))]));
  const wanted = Object.keys(CHANGES);
  assertEquals([...seen].sort(), wanted.sort());
  assertEquals(journals.some(({ snapshot }) => snapshot !== null), true);
});

for (const journal of journals) {
  Deno.test(`the kept journal of ${journal.name} gives the state that it gave`, () => {
    const contents = contentsOf(journal);
    const state = decodeSnapshot(Uint8Array.fromBase64(journal.state));
    // The order of the fields does not matter.
    const now = replayed(contents).snapshot();
    assertEquals(now, state);
    assertEquals(decodeSnapshot(encodeSnapshot(now)), state);
    const restored = DispatcherState.restore(state).snapshot();
    assertEquals(decodeSnapshot(encodeSnapshot(restored)), state);
    for (const record of contents.records) {
      assertEquals(encodeRecords(decodeRecords(record)), record);
    }
  });
}

Deno.test("openSqliteLog reads the kept journal file", async () => {
  await using folder = await TempFolder.make();
  const path = `${folder.path}/journal.sqlite`;
  await Deno.copyFile(here("journal.sqlite"), path);
  const log = await openSqliteLog(path);
  const wanted = contentsOf(journals.find(({ snapshot }) => snapshot !== null)!);
  const { snapshot, records } = await log.read();
  await log.close();
  assertEquals({ snapshot, records: [...records] }, { ...wanted });
});

Deno.test("the checkpoint of every pipeline is written as it was, byte for byte", async () => {
  const now = await makeCheckpoints();
  for (const { name, saved } of checkpoints) {
    assertEquals(now.find((checkpoint) => checkpoint.name === name)?.saved, saved, name);
  }
  assertEquals(now.map(({ name }) => name), checkpoints.map(({ name }) => name));
});

Deno.test("every kept checkpoint is restored, and gives the rest that it gave", async () => {
  for (const { name, saved, rest } of checkpoints) {
    const bytes = Uint8Array.fromBase64(saved);
    const dataset = await PIPELINES[name]!();
    const { node } = dataset;
    assertEquals(
      encodeIteration(identityOf(node), decodeIteration(identityOf(node), bytes)),
      bytes,
      name,
    );
    await using iterator = open(dataset, await prepared());
    await iterator.restore(bytes);
    assertEquals(describe(await outcomesOf(iterator, ELEMENTS_MAX)), rest, name);
  }
});
