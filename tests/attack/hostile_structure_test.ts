/**
 * Functions and workers that answer with structure which takes many times its bytes when it is
 * decoded: it must be refused before it takes the memory of a worker or a trainer.
 */
import { openIterator } from "../../data/dataset_iterator.ts";
import { rebuilt } from "../../data/foreign/foreign.ts";
import type { ForeignRunners, ServedElements } from "../../data/foreign/foreign_runners.ts";
import { installedHost } from "../../data/host.ts";
import { Feed } from "../../actors/client/feed.ts";
import { bytesOfAnswer } from "../../actors/exactly_once/kept_answers.ts";
import { Dataset, distributedSave, LeatError, LocalCluster } from "../../mod.ts";
import { decodeElement, ELEMENT_STRUCTURE_BYTES_MAX } from "../../transport/element.ts";
import { encodeMessage } from "../../transport/codec.ts";
import { Payload } from "../../transport/payload.ts";
import {
  assert,
  assertEquals,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";
import { soon } from "../cluster/lib.ts";
import { inFolder } from "../lib/temp_folder.ts";

/** Each of so many empty lists counts as 33 bytes of structure: more than an element may have. */
const LISTS = Math.ceil(ELEMENT_STRUCTURE_BYTES_MAX / 33);

/** A message of empty lists, which is not decoded to be made. */
function listsFrame(count: number): Uint8Array {
  const frame = new Uint8Array(10 + count).fill(0x90);
  const view = new DataView(frame.buffer);
  frame[0] = 0xce;
  view.setUint32(1, 5 + count);
  frame[5] = 0xdd;
  view.setUint32(6, count);
  return frame;
}

/**
 * A dataset whose function replaces the first payload in an answer of its process. The encoder looks
 * at the prototype of every value.
 */
function replacing(lists: number, isAnswer: (value: object) => boolean): Dataset<number> {
  const code = `const { getPrototypeOf } = Object; const { lists } = args;
    let isDone = false;
    const frame = (${listsFrame})(lists);
    Object.getPrototypeOf = (value) => {
      if (!isDone && value !== null && typeof value === "object" && (${isAnswer})(value)) {
        isDone = true;
        (value.outcome?.frame ?? value.frame).bytes = frame;
      }
      return getPrototypeOf(value);
    };`;
  return Dataset.range(10).map((x, { code, lists }) => {
    if (x === 0) [].at.constructor("args", code)({ lists });
    return x;
  }, { captures: { code, lists } });
}

Deno.test("a forged report of a save does not end the worker", async () => {
  await inFolder(async (folder) => {
    await using cluster = await LocalCluster.start({
      ...{ workers: 1, carrier: "thread", logLevel: "off" },
      confine: { writeRoots: [folder] },
    });
    const hostile = replacing(
      1_000_000,
      // deno-lint-ignore no-explicit-any -- runs in the hostile process
      (value: any) => value.outcome?.frame !== undefined,
    );
    const error = await assertRejects(
      () => soon("its end", distributedSave(hostile, `${folder}/hostile`, cluster)),
      LeatError,
    );
    assertStringIncludes(error.message, "report about a save is invalid");
    const honest = Dataset.range(10).map((x) => x + 1);
    await distributedSave(honest, `${folder}/honest`, cluster);
    assertEquals((await Array.fromAsync(await Dataset.load(`${folder}/honest`))).length, 10);
  });
});

Deno.test("no function of others fills its trainer with the structure of an element", async () => {
  const hostile = replacing(
    LISTS,
    // deno-lint-ignore no-explicit-any -- runs in the hostile process
    (value: any) => value.kind === "elements" && value.frame !== undefined,
  );
  const foreign = Dataset.deserialize(hostile.serialize());
  const error = await assertRejects(() => Array.fromAsync(foreign), LeatError);
  assertStringIncludes(error.message, "ELEMENT_STRUCTURE_BYTES_MAX");
});

Deno.test("no function of others fills its trainer with the state of an iterator", async () => {
  const foreign = Dataset.deserialize(Dataset.range(3).map((x) => x).serialize()).node;
  // The range is this program's, so it stays here, and the process of the function reads it.
  const node = rebuilt(foreign, foreign.attributes, [Dataset.range(3).node]);
  const input = Promise.withResolvers<ServedElements>();
  const foreignRunners: ForeignRunners = {
    obstacle: undefined,
    start: () => ({
      open: (_, openInput) => {
        input.resolve(openInput(0, 0));
        return Promise.reject(new LeatError("aborted", "this test needs no elements"));
      },
      close: () => Promise.resolve(),
    }),
  };
  const host = Object.assign(Object.create(installedHost()), { foreignRunners });
  await using iterator = openIterator(node, { host });
  await assertRejects(() => iterator.next(), LeatError, "no elements");
  const json = new TextEncoder().encode(`[${"[],".repeat(2 ** 23)}0]`);
  const state = new Uint8Array(4 + json.length);
  new DataView(state.buffer).setUint32(0, json.length, true);
  state.set(json, 4);
  const { restore } = await input.promise;
  const error = await assertRejects(() => restore(state), LeatError, "ELEMENT_VALUES_MAX");
  assertEquals(error.code, "resource_exhausted");
});

Deno.test("no worker fills a trainer with the structure of an element", () => {
  const feed = new Feed();
  const error = assertThrows(
    () => feed.decode({ element: new Payload(listsFrame(LISTS)) }),
    LeatError,
  );
  assertEquals((error as LeatError).code, "resource_exhausted");
  assertStringIncludes((error as LeatError).message, "smaller batch()");
  // The next element is read.
  assertEquals(feed.decode({ element: new Payload(encodeMessage([7])) }), [7]);
});

Deno.test("errors of a worker that wait for the training loop count with the objects in their details", () => {
  const a = Array.from({ length: 1_000 }, (_, i) => i < 500 ? new Uint8Array(0) : []);
  const error = {
    code: "unknown" as const,
    message: "",
    details: { a, ["k".repeat(9_000)]: null },
  };
  const answer = { kind: "error" as const, error };
  // At least the memory of empty arrays of bytes, of empty lists, and of a long key.
  const bytes = bytesOfAnswer(answer);
  assert(bytes > 500 * 200 + 500 * 32 + 2 * 9_000, `${bytes}`);
  const feed = new Feed();
  for (let i = 0; i < 2; i++) feed.push(answer);
  assertEquals(feed.bytes, 2 * bytes);
  for (let i = 0; i < 2; i++) feed.take();
  assertEquals(feed.bytes, 0);
});

Deno.test("an element of many texts, nested maps and long payloads is read", () => {
  const element = {
    text: "x".repeat(2 ** 24),
    words: Array.from({ length: 300_000 }, (_, i) => `word ${i}`),
    boxes: Array.from({ length: 30_000 }, (_, i) => ({ at: { x: i, y: i }, sides: [i, i, i] })),
    pixels: new Uint8Array(2 ** 26),
  };
  const decoded = decodeElement(encodeMessage(element)) as typeof element;
  assertEquals(decoded.words.length, element.words.length);
  assertEquals(decoded.boxes.at(-1), element.boxes.at(-1));
  assert(decoded.pixels.length === 2 ** 26);
});
