/**
 * The bookkeeping of the runtime: envelope numbers, answers to repeated asks, deadlines, queues.
 */
import {
  type Answer,
  Answers,
  CHECK_FROM,
  FORGET_AFTER_MS,
  IDLE_MS,
} from "../../../actors/runtime/asking/answers.ts";
import { copyBody } from "../../../actors/runtime/body.ts";
import { Deadlines } from "../../../actors/runtime/asking/asks.ts";
import { ReceiveMarks, Recent, SendNumbers } from "../../../actors/runtime/asking/numbering.ts";
import { SAME_PROCESS } from "../../../actors/runtime/identity.ts";
import { formatRef, nameOf, sameActor } from "../../../actors/runtime/ref.ts";
import { LeatError } from "../../../core/error.ts";
import { Fifo } from "../../../core/fifo.ts";
import { tensor } from "../../../core/tensor.ts";
import { DenoWorld } from "../../../platform/deno_world.ts";
import { assert, assertEquals, assertStringIncludes, assertThrows } from "../../assert.ts";

const reply = (body: unknown): Answer => ({ kind: "reply", body });

const TIMEOUT_MS = 1_000;

/** An ask that came at a given time. */
function begin(answers: Answers, source: string, id: number, settledBelow: number, nowMs = 0) {
  const ask = { id, settledBelow, timeoutMs: TIMEOUT_MS };
  return answers.begin(lifeOf(source), SAME_PROCESS, ask, nowMs);
}

const lifeOf = (incarnation: string) => ({ node: "there", path: "/asker", incarnation });

Deno.test("Answers forgets answers below the settled mark", () => {
  const answers = new Answers();
  for (const id of [1, 2, 3]) {
    assertEquals(begin(answers, "asker", id, 1), "new");
    answers.settle("asker", id, reply(id));
  }
  assertEquals(begin(answers, "asker", 2, 1), reply(2));
  assertEquals(begin(answers, "asker", 4, 3), "new");
  assertEquals(begin(answers, "asker", 3, 3), reply(3));
  assertEquals(begin(answers, "asker", 2, 3), "new", "its asker will never ask that again");
});

Deno.test("Answers forgets settled answers after an ask that still waits", () => {
  const answers = new Answers();
  for (const id of [1, 2, 5, 7, 8]) begin(answers, "asker", id, 1);
  for (const id of [2, 5, 7, 8]) answers.settle("asker", id, reply(id));
  const ask = { id: 9, settledBelow: 1, open: [1, 7, 9], timeoutMs: TIMEOUT_MS };
  assertEquals(answers.begin(lifeOf("asker"), SAME_PROCESS, ask, 0), "new");
  assertEquals(answers.size, 1);
  assertEquals(begin(answers, "asker", 1, 1), "pending");
  assertEquals(begin(answers, "asker", 7, 1), reply(7));
  const few = { id: 30, settledBelow: 1, open: [1, 7], timeoutMs: TIMEOUT_MS };
  answers.settle("asker", 9, reply(9));
  assertEquals(answers.begin(lifeOf("asker"), SAME_PROCESS, few, 0), "new");
  assertEquals(begin(answers, "asker", 9, 1), reply(9), "nothing was said of it");
});

Deno.test("Answers checks idle askers when much is kept, ever more rarely, and forgets them", () => {
  const answers = new Answers();
  const settle = (source: string, nowMs: number) => {
    begin(answers, source, 1, 1, nowMs);
    answers.settle(source, 1, reply(source));
  };
  for (let i = 0; i < CHECK_FROM - 1; i++) settle(`early ${i}`, 0);
  assert(!answers.isIdleCheckDue(IDLE_MS), "few are worth no message");
  settle("late", IDLE_MS - 1);
  assert(answers.isIdleCheckDue(IDLE_MS));
  const quiet = answers.idleAskers(IDLE_MS);
  assertEquals(quiet.length, CHECK_FROM - 1);
  assert(quiet.every(({ incarnation }) => incarnation !== "late"));
  assert(!answers.isIdleCheckDue(IDLE_MS + 1), "it has just looked");
  assertEquals(answers.idleAskers(2 * IDLE_MS - 1).map(({ incarnation }) => incarnation), ["late"]);
  assertEquals(
    answers.idleAskers(2 * IDLE_MS).length,
    CHECK_FROM - 1,
    "who may live is asked after again",
  );
  assertEquals(answers.idleAskers(3 * IDLE_MS - 2).length, 0, "but later each time");
  begin(answers, "early 0", 2, 1, 0);
  answers.forget("early 0");
  answers.settle("early 0", 2, reply(2));
  assertEquals(answers.size, CHECK_FROM - 1, "an answer that its asker did not live to hear too");
});

Deno.test("Answers recognises an ask in progress, and handles a dropped one again", () => {
  const answers = new Answers();
  assertEquals(begin(answers, "asker", 1, 1), "new");
  assertEquals(begin(answers, "asker", 1, 1), "pending");
  assertEquals(begin(answers, "another", 1, 1), "new");
  answers.drop("asker", 1);
  assertEquals(begin(answers, "asker", 1, 1), "new");
});

Deno.test("Answers keeps a bounded number, the newest", () => {
  const answers = new Answers();
  const count = 20_000;
  for (let id = 1; id <= count; id++) {
    begin(answers, "asker", id, 1);
    answers.settle("asker", id, reply(id));
  }
  assertEquals(begin(answers, "asker", count, 1), reply(count));
  assertEquals(begin(answers, "asker", 1, 1), "new");
});

Deno.test("Answers first forgets answers to the askers idle longest", () => {
  const answers = new Answers();
  const settle = (source: string, id: number, nowMs: number) => {
    begin(answers, source, id, 1, nowMs);
    answers.settle(source, id, reply(id));
  };
  settle("busy", 1, 0);
  const count = 16_384;
  for (let i = 0; i < count / 2; i++) settle(`other ${i}`, 1, i);
  settle("busy", 2, count);
  for (let i = count / 2; i < count; i++) settle(`other ${i}`, 1, count + i);
  assert(answers.size <= count);
  for (const id of [1, 2]) assertEquals(begin(answers, "busy", id, 1, 2 * count), reply(id));
  assertEquals(begin(answers, "other 0", 1, 1, 2 * count), "new");
});

Deno.test("Answers forgets answers to askers whose deadline is long past", () => {
  const answers = new Answers();
  const atMs = 10 * FORGET_AFTER_MS;
  for (const asker of ["ended", "alive"]) {
    begin(answers, asker, 1, 1, atMs);
    answers.settle(asker, 1, reply(1));
  }
  begin(answers, "slow", 1, 1, atMs);
  assertEquals(begin(answers, "alive", 2, 1, atMs + TIMEOUT_MS), "new");
  assertEquals(answers.size, 2);
  const laterMs = atMs + TIMEOUT_MS + FORGET_AFTER_MS;
  assertEquals(begin(answers, "other", 1, 1, laterMs), "new");
  assertEquals(answers.size, 1);
  assertEquals(begin(answers, "alive", 1, 1, laterMs), reply(1));
  assertEquals(begin(answers, "slow", 1, 1, laterMs), "pending", "it is being handled still");
});

Deno.test("SendNumbers counts per target, and never decreases when counts are folded", () => {
  const numbers = new SendNumbers();
  assertEquals([numbers.next("x"), numbers.next("x"), numbers.next("y")], [1, 2, 1]);
  for (let i = 0; i < 10_000; i++) numbers.next(`other ${i}`);
  assert(numbers.next("x") > 2);
});

Deno.test("SendNumbers leaves no gaps for a target in use, however many others there are", () => {
  const numbers = new SendNumbers();
  for (let i = 0; i < 50; i++) numbers.next("seldom");
  numbers.next("often");
  for (let i = 0; i < 10_000; i++) {
    numbers.next(`other ${i}`);
    if (i % 1_000 === 0) assertEquals(numbers.next("often"), i / 1_000 + 2);
  }
});

Deno.test("ReceiveMarks keeps the mark of an active sender, however many others there are", () => {
  const marks = new ReceiveMarks();
  marks.accept("often", 1);
  for (let i = 0; i < 40_000; i++) {
    marks.accept(`other ${i}`, 1);
    if (i % 10_000 === 0) assertEquals(marks.accept("often", 1), -1, "it has come already");
  }
});

Deno.test("Recent keeps the names used last, and reports each dropped value once", () => {
  const forgotten: number[] = [];
  const recent = new Recent<number>(3, (values) => forgotten.push(...values));
  for (const i of [1, 2, 3, 4]) recent.set(`${i}`, i);
  assertEquals([recent.get("1"), forgotten], [1, []]);
  for (const i of [5, 6]) recent.set(`${i}`, i);
  assertEquals(forgotten, [2, 3]);
  assertEquals([1, 2, 3, 4, 5, 6].map((i) => recent.get(`${i}`)), [
    1,
    undefined,
    undefined,
    4,
    5,
    6,
  ]);
  for (let i = 10; i < 30; i++) recent.set(`${i}`, i);
  assertEquals(new Set(forgotten).size, forgotten.length);
});

Deno.test("ReceiveMarks accepts nothing from a closed sender, and forgets it last", () => {
  const marks = new ReceiveMarks();
  marks.accept("ended", 1);
  for (let i = 1; i < 16_384; i++) marks.accept(`early ${i}`, 1);
  marks.close("ended");
  assertEquals(marks.accept("ended", 2), -1);
  for (let i = 1; i < 16_384; i++) marks.accept(`late ${i}`, 1);
  assertEquals(marks.accept("ended", 3), -1);
});

Deno.test("ReceiveMarks accepts newer numbers and counts missing ones", () => {
  const marks = new ReceiveMarks();
  assertEquals(marks.accept("s", 5), 0, "the first is taken as it is");
  assertEquals(marks.accept("s", 6), 0);
  assertEquals(marks.accept("s", 9), 2);
  assertEquals(marks.accept("s", 9), -1);
  assertEquals(marks.accept("s", 7), -1);
  assertEquals(marks.accept("t", 1), 0);
});

Deno.test("Fifo keeps order across compactions", () => {
  const fifo = new Fifo<number>();
  let next = 0;
  let expected = 0;
  for (let round = 0; round < 50; round++) {
    for (let i = 0; i < 300; i++) fifo.push(next++);
    for (let i = 0; i < 250; i++) assertEquals(fifo.shift(), expected++);
  }
  assertEquals(fifo.length, 50 * 50);
  while (fifo.length > 0) assertEquals(fifo.shift(), expected++);
  assertEquals([fifo.shift(), expected], [undefined, next]);
});

Deno.test("Deadlines fires due items in order, and no removed ones", async () => {
  const world = new DenoWorld();
  const fired: string[] = [];
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const deadlines = new Deadlines<string>(world, (item) => {
    fired.push(item);
    if (item === "last") resolve();
  });
  const now = world.nowMs();
  deadlines.add(now + 60, "last");
  const removed = deadlines.add(now + 20, "removed");
  deadlines.add(now + 30, "second");
  deadlines.add(now + 5, "first");
  deadlines.remove(removed);
  await done;
  assertEquals(fired, ["first", "second", "last"]);
});

Deno.test("Deadlines fires in order when a busy thread finds all due", async () => {
  const world = new DenoWorld();
  const fired: string[] = [];
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const deadlines = new Deadlines<string>(world, (item) => {
    if (fired.push(item) === 3) resolve();
  });
  const now = world.nowMs();
  deadlines.add(now + 40, "last");
  deadlines.add(now + 20, "second");
  deadlines.add(now + 1, "first");
  while (world.nowMs() < now + 60);
  await done;
  assertEquals(fired, ["first", "second", "last"]);
});

Deno.test("Deadlines keeps an item added by another of the same bucket", async () => {
  const world = new DenoWorld();
  const fired: string[] = [];
  const { promise: done, resolve } = Promise.withResolvers<void>();
  const now = world.nowMs();
  const deadlines = new Deadlines<string>(world, (item) => {
    fired.push(item);
    if (item === "again") resolve();
    if (item !== "first") return;
    deadlines.remove(removed);
    deadlines.add(now + 40, "again");
  });
  deadlines.add(now + 1, "first");
  const removed = deadlines.add(now + 40, "removed");
  while (world.nowMs() < now + 60);
  await done;
  assertEquals(fired, ["first", "again"]);
});

Deno.test("Deadlines keeps no timer when all items are removed or cleared", () => {
  const world = new DenoWorld();
  const deadlines = new Deadlines<string>(world, () => {});
  deadlines.remove(deadlines.add(world.nowMs() + 3_600_000, "x"));
  deadlines.add(world.nowMs() + 3_600_000, "y");
  deadlines.clear();
});

Deno.test("copyBody copies plain data deeply and hands tensors over", () => {
  const image = tensor(new Float32Array([1, 2]));
  const original = { list: [{ x: 1 }], floats: new Float32Array([1, 2]), image, none: null };
  const copy = copyBody(original) as typeof original;
  assertEquals(copy, original);
  assert(copy.list[0] !== original.list[0]);
  assert(copy.floats.buffer !== original.floats.buffer);
  assert(copy.image === image);
});

Deno.test("copyBody refuses values that other carriers could not send, naming their path", () => {
  for (
    const strange of [() => 1, Symbol("s"), new Map(), new Date(0), JSON.parse('{"__proto__":1}')]
  ) {
    const error = assertThrows(() => copyBody({ list: [0, strange] }), LeatError, "body.list.1");
    assertEquals(error.code, "invalid_argument");
  }
});

Deno.test("copyBody names the class of what it refuses, also that of a generator", () => {
  const generator = (function* () {})();
  const named = "body.generator is an instance of Generator";
  assertThrows(() => copyBody({ generator }), LeatError, named);
});

Deno.test("copyBody refuses arrays whose buffer was transferred, naming their path", () => {
  const memory = new ArrayBuffer(8);
  const views = [new Uint8Array(memory), new DataView(memory)];
  memory.transfer();
  for (const view of views) {
    const error = assertThrows(() => copyBody({ list: [0, view] }), LeatError, "body.list.1");
    assertEquals(error.code, "invalid_argument");
    assertStringIncludes(error.message, `a ${view.constructor.name} whose buffer was transferred`);
  }
});

Deno.test("references compare by name, and by incarnation where both have one", () => {
  const name = { node: "a", path: "/x" };
  const first = { ...name, incarnation: "0-1" };
  const second = { ...name, incarnation: "0-2" };
  assert(sameActor(name, first) && sameActor(first, { ...first }) && !sameActor(first, second));
  assert(!sameActor(name, { ...name, path: "/y" }));
  assertEquals(nameOf(first), name);
  assertEquals([formatRef(name), formatRef(first)], ["a/x", "a/x#0-1"]);
});
