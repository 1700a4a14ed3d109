/** Repeated requests: the same answer, once, until it is acknowledged. */
import { readerId, Repeats } from "../../../actors/exactly_once/repeats.ts";
import type { ElementAnswer } from "../../../actors/worker/protocol.ts";
import { Payload } from "../../../transport/payload.ts";
import {
  assertEquals,
  assertMatch,
  assertRejects,
  assertStrictEquals,
  assertThrows,
} from "../../assert.ts";
import { LeatError } from "../../../core/error.ts";
import type { World } from "../../../actors/runtime/world.ts";

let nowMs = 0;
const world = { nowMs: () => nowMs } as World;

/** Who asks, where the tests do not say. */
const asker = { node: "reader", path: "/client" };

function element(...bytes: number[]): ElementAnswer {
  return { kind: "element", element: new Payload(new Uint8Array(bytes)) };
}

Deno.test("Repeats gives a repeated request the same answer without producing again", () => {
  const repeats = new Repeats(world);
  let produced = 0;
  const produce = () => element(++produced);
  const request = { clientId: 1, sequence: 1, acknowledged: 0 };
  const first = repeats.answer(request, produce, asker);
  assertStrictEquals(repeats.answer(request, produce, asker), first);
  assertEquals(produced, 1);
});

Deno.test("Repeats gives an answer in production to the repeated request, not the earlier one", async () => {
  const repeats = new Repeats(world);
  const later = Promise.withResolvers<ElementAnswer>();
  const request = { clientId: 1, sequence: 1, acknowledged: 0 };
  const first = repeats.answer(request, () => later.promise, asker);
  const again = repeats.answer(request, () => element(9), asker);
  const error = await assertRejects(async () => await first, LeatError);
  assertEquals(error.code, "aborted");
  later.resolve(element(1));
  assertEquals(await again, element(1));
  assertEquals(repeats.answer(request, () => element(9), asker), element(1));
});

Deno.test("Repeats gives a patient request only an answer that was not given, and holds it otherwise", async () => {
  const repeats = new Repeats(world);
  const request = { clientId: 1, sequence: 1, acknowledged: 0 };
  const patient = { ...request, patient: true };
  const first = repeats.answer(patient, () => element(1), asker);
  assertEquals(first, element(1));
  const held = [1, 2].map(async () => await repeats.answer(patient, () => element(9), asker));
  assertStrictEquals(repeats.answer(request, () => element(9), asker), first);
  repeats.answer({ ...request, sequence: 2, acknowledged: 1 }, () => element(2), asker);
  for (const answer of held) {
    const error = await assertRejects(() => answer, LeatError);
    assertEquals(error.code, "aborted");
  }
});

Deno.test("Repeats forgets acknowledged answers and refuses to repeat them", () => {
  const repeats = new Repeats(world);
  repeats.answer({ clientId: 1, sequence: 1, acknowledged: 0 }, () => element(1), asker);
  repeats.answer({ clientId: 1, sequence: 2, acknowledged: 1 }, () => element(2), asker);
  const late = { clientId: 1, sequence: 1, acknowledged: 0 };
  const error = assertThrows(() => repeats.answer(late, () => element(3), asker), LeatError);
  assertEquals(error.code, "aborted");
});

Deno.test("Repeats forgets a client that acknowledges what it was not given, and refuses what it waits for", async () => {
  const ended: string[] = [];
  const repeats = new Repeats(world, { onEnded: (reader) => ended.push(reader) });
  const never = () => new Promise<ElementAnswer>(() => {});
  const ask = (sequence: number, acknowledged: number) =>
    repeats.answer({ clientId: 1, sequence, acknowledged }, never, asker);
  const refused = [1, 3].map((sequence) =>
    assertRejects(async () => await ask(sequence, 0), LeatError, "was not given")
  );
  assertThrows(() => ask(2, 1), LeatError, "was not given");
  await Promise.all(refused);
  assertEquals([ended, repeats.clients], [[readerId(asker, 1)], 0]);
  const last = assertRejects(async () => await ask(5, 4), LeatError, "was not given");
  assertThrows(() => repeats.acknowledge(readerId(asker, 1), 5), LeatError, "was not given");
  await last;
});

Deno.test("Repeats answers requests in the order of their sequence", async () => {
  const repeats = new Repeats(world);
  let produced = 0;
  const ask = (sequence: number) =>
    repeats.answer({ clientId: 1, sequence, acknowledged: 0 }, () => element(++produced), asker);
  const [third, second, first] = [ask(3), ask(2), ask(1)];
  const answers = await Promise.all([first, second, third]);
  assertEquals(answers, [element(1), element(2), element(3)]);
});

Deno.test("Repeats keeps clients apart", () => {
  const repeats = new Repeats(world);
  const one = repeats.answer(
    { clientId: 1, sequence: 1, acknowledged: 0 },
    () => element(1),
    asker,
  );
  const two = repeats.answer(
    { clientId: 2, sequence: 1, acknowledged: 0 },
    () => element(2),
    asker,
  );
  assertEquals([one, two], [element(1), element(2)]);
});

Deno.test("Repeats produces again after a request that failed", async () => {
  const repeats = new Repeats(world);
  const request = { clientId: 1, sequence: 1, acknowledged: 0 };
  const failing = repeats.answer(
    request,
    () => Promise.reject(new LeatError("unavailable", "gone")),
    asker,
  );
  await assertRejects(async () => await failing, LeatError);
  assertEquals(await repeats.answer(request, () => element(1), asker), element(1));
});

Deno.test("Repeats bounds a client's unacknowledged answers", () => {
  const repeats = new Repeats(world);
  const fill = () => {
    for (let sequence = 1; sequence < 10_000; sequence++) {
      repeats.answer({ clientId: 1, sequence, acknowledged: 0 }, () => ({ kind: "end" }), asker);
    }
  };
  assertEquals(assertThrows(fill, LeatError).code, "resource_exhausted");
});

Deno.test("Repeats accepts the lowest request after later ones, and none too far ahead", async () => {
  const repeats = new Repeats(world);
  const ask = (sequence: number, acknowledged: number) =>
    Promise.resolve().then(() =>
      repeats.answer({ clientId: 1, sequence, acknowledged }, () => element(sequence % 256), asker)
    ).then((answer) => answer.kind, (error) => LeatError.from(error).code);
  const wanted = Array.from({ length: 2_100 }, (_, i) => i + 1);
  const first = await Promise.all(wanted.map((sequence) => ask(sequence, 0)));
  const taken = first.lastIndexOf("element") + 1;
  assertEquals(first, wanted.map((s) => s <= taken ? "element" : "resource_exhausted"));
  const refused = wanted.slice(taken).reverse();
  const again = await Promise.all(refused.map((sequence) => ask(sequence, taken)));
  assertEquals(again, refused.map((s) => s <= 2 * taken ? "element" : "resource_exhausted"));
});

Deno.test("Repeats.awaited lists clients with unacknowledged elements or errors, for a limited time", () => {
  const repeats = new Repeats(world);
  const given: Record<number, ElementAnswer> = {
    1: element(1),
    2: { kind: "error", error: new LeatError("data_loss", "damaged").toWire() },
    3: { kind: "end" },
  };
  for (const [id, answer] of Object.entries(given)) {
    const clientId = Number(id);
    const by = { node: `node-${id}`, path: "/client" };
    repeats.answer({ clientId, sequence: 1, acknowledged: 0 }, () => answer, by);
  }
  const awaited = () => repeats.awaited(1_000).map(({ asker: { node } }) => node);
  assertEquals(awaited(), ["node-1", "node-2"]);
  repeats.acknowledge(readerId({ node: "node-1", path: "/client" }, 1), 1);
  assertEquals(awaited(), ["node-2"]);
  nowMs += 1_000;
  assertEquals(awaited(), []);
});

Deno.test("Repeats forgets clients that have been idle for long", () => {
  const repeats = new Repeats(world);
  repeats.answer({ clientId: 1, sequence: 1, acknowledged: 0 }, () => element(1), asker);
  nowMs += 3_600_000;
  repeats.answer({ clientId: 2, sequence: 1, acknowledged: 0 }, () => element(1), asker);
  assertEquals(repeats.clients, 1);
});

Deno.test("Repeats forgets an idle client without further requests, but none that waits", async () => {
  const repeats = new Repeats(world);
  const answer = Promise.withResolvers<ElementAnswer>();
  const waiting = repeats.answer(
    { clientId: 1, sequence: 1, acknowledged: 0 },
    () => answer.promise,
    asker,
  );
  for (const clientId of [2, 3]) {
    repeats.answer({ clientId, sequence: 1, acknowledged: 0 }, () => element(1), asker);
  }
  nowMs += 3_600_000;
  repeats.answer({ clientId: 3, sequence: 2, acknowledged: 1 }, () => element(2), asker);
  assertEquals(repeats.clients, 2);
  answer.resolve(element(1));
  await waiting;
  nowMs += 3_600_000;
  repeats.answer({ clientId: 3, sequence: 3, acknowledged: 2 }, () => element(3), asker);
  assertEquals(repeats.clients, 1);
});

/** A source that has forgotten client 1, which acknowledged one of the three answers that it was given. */
function forgetful(): Repeats {
  const repeats = new Repeats(world, { refusesLost: true });
  const given = [element(1), element(2), { kind: "later" } as const];
  for (const [i, answer] of given.entries()) {
    repeats.answer(
      { clientId: 1, sequence: i + 1, acknowledged: Math.min(i, 1) },
      () => answer,
      asker,
    );
  }
  nowMs += 600_001;
  repeats.answer({ clientId: 2, sequence: 1, acknowledged: 0 }, () => element(1), asker);
  assertEquals(repeats.clients, 1);
  return repeats;
}

Deno.test("Repeats refuses a forgotten client what it was given and lost, and gives what follows", () => {
  const repeats = forgetful();
  const ask = (sequence: number, acknowledged: number) =>
    repeats.answer({ clientId: 1, sequence, acknowledged }, () => element(sequence), asker);
  const lost = assertThrows(() => ask(2, 1), LeatError, "has dropped element 2");
  assertEquals(lost.code, "aborted");
  assertEquals(ask(3, 1), element(3));
  assertEquals(ask(4, 3), element(4));
});

Deno.test("Repeats refuses a lost answer again after its client was forgotten twice", () => {
  const repeats = forgetful();
  const ask = () => repeats.answer({ clientId: 1, sequence: 2, acknowledged: 1 }, never, asker);
  assertThrows(ask, LeatError, "has dropped element 2");
  nowMs += 600_001;
  repeats.answer({ clientId: 2, sequence: 2, acknowledged: 1 }, () => element(1), asker);
  assertThrows(ask, LeatError, "has dropped element 2");
});

Deno.test("Repeats goes on with a forgotten client that had lost nothing", () => {
  const repeats = forgetful();
  const answer = repeats.answer(
    { clientId: 1, sequence: 4, acknowledged: 3 },
    () => element(4),
    asker,
  );
  assertEquals(answer, element(4));
});

Deno.test("Repeats does not wait for a request that its client gave up", async () => {
  const repeats = new Repeats(world);
  const second = repeats.answer(
    { clientId: 1, sequence: 2, acknowledged: 0 },
    () => element(2),
    asker,
  );
  // The first one never came, and its client has settled it.
  const third = repeats.answer(
    { clientId: 1, sequence: 3, acknowledged: 1 },
    () => element(3),
    asker,
  );
  assertEquals(await Promise.all([second, third]), [element(2), element(3)]);
});

for (const kind of ["element", "remainder"] as const) {
  Deno.test(`Repeats does not repeat ${kind === "element" ? "an" : "a"} ${kind} that was handed over to another thread`, () => {
    const repeats = new Repeats(world);
    const bytes = new Uint8Array(8);
    const request = { clientId: 1, sequence: 1, acknowledged: 0 };
    const place = { sequence: 0, split: 0, index: 0 };
    repeats.answer(request, () => ({ kind, element: new Payload(bytes), place }), asker);
    structuredClone(bytes, { transfer: [bytes.buffer] });
    const again = () => repeats.answer(request, () => element(1), asker);
    assertEquals(assertThrows(again, LeatError).code, "aborted");
  });
}

Deno.test("Repeats produces nothing for a request that came early, and whose client left at its turn", async () => {
  const repeats = new Repeats(world);
  const produced: number[] = [];
  const ask = (sequence: number) =>
    repeats.answer({ clientId: 1, sequence, acknowledged: 0 }, () => {
      produced.push(sequence);
      return element(sequence);
    }, asker);
  const early = ask(2);
  ask(1);
  repeats.leave(readerId(asker, 1));
  assertEquals((await assertRejects(async () => await early, LeatError)).code, "cancelled");
  assertEquals(produced, [1]);
});

Deno.test("Repeats reports each answer once its client has acknowledged it, and no other", () => {
  const arrived: unknown[] = [];
  const repeats = new Repeats(world, { onArrived: (answer) => arrived.push(answer) });
  for (const sequence of [1, 2, 3]) {
    const request = { clientId: 1, sequence, acknowledged: 0 };
    repeats.answer(request, () => element(sequence), asker);
  }
  repeats.acknowledge(readerId(asker, 1), 2);
  repeats.acknowledge(readerId(asker, 1), 2);
  assertEquals(arrived, [element(1), element(2)]);
  repeats.leave(readerId(asker, 1));
  assertEquals(arrived.length, 2);
});

Deno.test("Repeats refuses requests beyond a limit of unacknowledged bytes, until they are acknowledged", () => {
  const repeats = new Repeats(world, { bytesMax: 1_000 });
  const ask = (clientId: number, sequence: number, acknowledged = 0) =>
    repeats.answer(
      { clientId, sequence, acknowledged },
      () => element(...new Uint8Array(300)),
      asker,
    );
  for (const sequence of [1, 2, 3]) ask(1, sequence);
  const error = assertThrows(() => ask(1, 4), LeatError);
  assertEquals(error.code, "resource_exhausted");
  assertMatch(error.message, /1200 bytes.*1000 are kept.*maxOutstandingRequests/);
  assertEquals(ask(1, 3), element(...new Uint8Array(300)), "what it has asked for is repeated");
  ask(2, 1);
  ask(1, 4, 1);
});

Deno.test("Repeats refuses requests beyond a limit of estimated bytes waited for", () => {
  const repeats = new Repeats(world, { bytesMax: 1_000 });
  const wait = (sequence: number) =>
    repeats.answer({ clientId: 1, sequence, acknowledged: 0 }, () => new Promise(() => {}), asker);
  for (let sequence = 1; sequence <= 128; sequence++) wait(sequence);
  assertEquals(assertThrows(() => wait(129), LeatError).code, "resource_exhausted");
  const known = new Repeats(world, { bytesMax: 1_000 });
  known.answer(
    { clientId: 9, sequence: 1, acknowledged: 0 },
    () => element(...new Uint8Array(100)),
    asker,
  );
  const asked = (sequence: number) =>
    known.answer({ clientId: 1, sequence, acknowledged: 0 }, () => new Promise(() => {}), asker);
  for (let sequence = 1; sequence <= 10; sequence++) asked(sequence);
  assertEquals(assertThrows(() => asked(11), LeatError).code, "resource_exhausted");
});

Deno.test("Repeats gives a single element of any size", () => {
  const repeats = new Repeats(world, { bytesMax: 1_000 });
  const request = { clientId: 1, sequence: 1, acknowledged: 0 };
  const answer = repeats.answer(request, () => element(...new Uint8Array(5_000)), asker);
  assertEquals(answer, element(...new Uint8Array(5_000)));
});

function never(): never {
  throw new Error("nothing is produced here");
}
