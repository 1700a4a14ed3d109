/**
 * Foreign functions that impersonate their process towards the trainer. Each costs only its own
 * iteration.
 */
import { Dataset, LeatError } from "../../mod.ts";
import { openIterator } from "../../data/dataset_iterator.ts";
import { mapConcurrent } from "../../core/map_concurrent.ts";
import { DenoHost } from "../../platform/deno_host.ts";
import { assert, assertEquals } from "../assert.ts";
import { PATIENCE_MS } from "../lib/until.ts";

/** Sends messages to the trainer; given to every attack. */
const SEND = `
  const { encodeMessage } = args;
  const [, , node, incarnation] = Deno.args;
  const source = { node, path: "/edge", incarnation: incarnation + "-1" };
  const target = { node: "worker", path: "/edge" };
  const send = ({ ask, answer, method, args, value }) => {
    const what = ask === undefined
      ? { kind: "reply", id: answer, body: value }
      : { kind: "ask", id: ask, method, body: args, timeoutMs: 1e6 };
    const bytes = encodeMessage({ source, target, number: 1, ...what });
    const whole = new Uint8Array(8 + bytes.length);
    new DataView(whole.buffer).setUint32(0, bytes.length, true);
    new DataView(whole.buffer).setUint32(4, 0xffffffff, true);
    whole.set(bytes, 8);
    Deno.stdout.writeSync(whole);
  };
`;

/** The code that a hostile function runs in its process. */
const ATTACKS: Readonly<Record<string, string>> = {
  "writes noise": "Deno.stdout.writeSync(crypto.getRandomValues(new Uint8Array(4096)))",
  "opens inputs that there are not":
    "for (let ask = 1e6; ask < 1e6 + 9; ask++) send({ ask, method: 'inputOpen', args: { part: ask % 3, input: ask - 1e6, epoch: 0 } }); return 1",
  "opens inputs with nonsense":
    "['x', null, [], { part: 1 }, { part: '__proto__', input: {}, epoch: -1 }].forEach((args, i) => send({ ask: 1e6 + i, method: 'inputOpen', args })); return 1",
  "names iterators that are not its own":
    "['Next', 'Again', 'Save', 'Restore', 'Close'].forEach((name, i) => send({ ask: 1e6 + i, method: 'iterator' + name, args: { iterator: 1, argument: new Uint8Array(9) } })); return 1",
  "asks for what no trainer answers": "send({ ask: 1e6, method: 'partOpen', args: {} })",
  "asks its trainer's host for files and services":
    "send({ ask: 1e6, method: 'host', args: { method: 'open', args: 's3://a/b' } }); send({ ask: 1e6 + 1, method: 'host', args: { method: 'serviceRead', args: { service: 'ws://127.0.0.1:1', options: {} } } }); return 1",
  "asks for a module":
    "send({ ask: 1e6, method: 'module', args: 'http://127.0.0.1:1/x.js' }); return 1",
  "answers what was not asked": "send({ answer: 12345, value: 1 })",
  "answers with what is no step":
    "for (let i = 0; i < 20; i++) send({ answer: i, value: { kind: 'elements', frame: 7 } })",
  "answers with elements that are none":
    "for (let i = 0; i < 20; i++) send({ answer: i, value: { kind: 'answers', answers: { length: 1e9 } } })",
  "answers with errors of nonsense":
    "for (let i = 0; i < 20; i++) send({ answer: i, value: { kind: 'answers', answers: [{ error: { code: {}, message: 7 } }, 3, null] } })",
  "answers with an element of nonsense":
    "for (let i = 0; i < 20; i++) send({ answer: i, value: { kind: 'elements', frame: new Uint8Array(300) } })",
  "gives a string of 300 MB": "return 'x'.repeat(3e8)",
  "gives what is nested without end": "let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a",
  "closes the channel": "Deno.stdout.close(); return new Promise(() => {})",
};

Deno.test("a foreign function that takes over its process can end only its iteration", async () => {
  // No attack needs the limit, and it would end any process on a busy machine.
  const host = new DenoHost({ foreign: { stallTimeoutMs: PATIENCE_MS } });
  const before = Object.getOwnPropertyNames(Object.prototype);
  const codec = import.meta.resolve("../../transport/codec.ts");
  await mapConcurrent(Object.entries(ATTACKS), 4, async ([name, attack]) => {
    const dataset = Dataset.range(3).map(
      (x, { body, codec }) =>
        x === 1 ? new Function(`return import("${codec}").then((args) => { ${body} })`)() : x,
      { captures: { body: `${SEND} ${attack}`, codec } },
    );
    const foreign = Dataset.deserialize(dataset.serialize());
    await using iterator = openIterator(foreign.node, { host });
    assertEquals(await iterator.next(), { done: false, value: 0 }, name);
    // It gives any element, or its iteration ends with an error: in either case it ends.
    const came = await iterator.next().then(({ value }) => value, LeatError.from);
    if (came instanceof LeatError) assert(came.message.length < 20_000, name);
  });
  assertEquals(Object.getOwnPropertyNames(Object.prototype), before);
  const own = Dataset.deserialize(Dataset.range(3).map((x) => x + 1).serialize());
  assertEquals(await Array.fromAsync(own), [1, 2, 3]);
});
