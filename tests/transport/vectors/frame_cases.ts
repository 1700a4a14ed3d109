/**
 * The envelopes and frames whose bytes `frames.json` fixes: at least one of each kind in
 * `docs/wire.md`.
 *
 * `generate.ts` writes the file; it must change only when the format does, on purpose.
 */
import type { Envelope } from "../../../actors/runtime/envelope.ts";
import { LeatError } from "../../../core/error.ts";
import { tensor } from "../../../core/tensor.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { fragmentHead, FRAME, writeAck, writeBatch } from "../../../transport/web_socket/frames.ts";
import { writeInSlot, writeSlotFile, writeSlotFreed } from "../../../transport/web_socket/slots.ts";
import { type Hello, writeBye, writeHello } from "../../../transport/hello.ts";
import { describe, type Vector } from "./cases.ts";

const CLIENT = { node: "client-7", path: "/client-1", incarnation: "9f00c1d2e3f40516-3" } as const;
const TASK = { node: "ws://10.0.0.5:5051", path: "/worker/task-4" } as const;
const LIFE = { ...TASK, incarnation: "00112233445566ff-4" } as const;

const ERROR = {
  code: "failed_precondition",
  message: "The task has ended",
  details: { reason: "task_fenced", taskId: 4 },
  cause: { code: "unavailable", message: "The worker was not heard of" },
} as const;

/** One envelope. */
interface EnvelopeCase {
  readonly name: string;
  readonly value: Envelope;
}

/** At least one envelope of each kind, and of each optional field. */
export const ENVELOPES: readonly EnvelopeCase[] = [
  {
    name: "tell",
    value: {
      ...{ kind: "tell", source: CLIENT, target: TASK, number: 1 },
      ...{ method: "release", body: { clientId: 12 } },
    },
  },
  {
    name: "ask",
    value: {
      ...{ kind: "ask", source: CLIENT, target: LIFE, number: 2, id: 1 },
      ...{ method: "getElement", body: { clientId: 12, number: 0 }, timeoutMs: 10_000 },
    },
  },
  {
    name: "ask that may be repeated, with other asks open",
    value: {
      ...{ kind: "ask", source: CLIENT, target: TASK, number: 3, id: 9 },
      ...{ method: "getElement", body: null, timeoutMs: 2_500.5, settledBelow: 4, open: [4, 6, 9] },
    },
  },
  {
    name: "reply with a message as payload",
    value: {
      ...{ kind: "reply", source: LIFE, target: CLIENT, number: 1, id: 1 },
      body: { kind: "element", element: new Payload(encodeMessage({ x: tensor([1, 2]) })) },
    },
  },
  {
    name: "failure",
    value: { kind: "failure", source: LIFE, target: CLIENT, number: 2, id: 9, error: ERROR },
  },
  { name: "watch", value: { kind: "watch", source: CLIENT, target: LIFE, number: 4, id: 2 } },
  { name: "unwatch", value: { kind: "unwatch", source: CLIENT, target: LIFE, number: 5, id: 2 } },
  {
    name: "down",
    value: { kind: "down", source: LIFE, target: CLIENT, number: 3, id: 2, error: ERROR.cause },
  },
];

/** The hellos of both sides of a connection. */
export const HELLOS: readonly Hello[] = [
  {
    ...{ role: "dialler", node: CLIENT.node, incarnation: "9f00c1d2e3f40516" },
    messageBytesMax: 2 ** 30,
  },
  {
    ...{ role: "listener", node: TASK.node, incarnation: "00112233445566ff" },
    messageBytesMax: 2 ** 32 + 1,
  },
];

/** The reason of a close. */
export const BYE = new LeatError("resource_exhausted", "A message of 2 GiB is larger than 1 GiB", {
  details: { limitBytes: 2 ** 30 },
});

/** Acknowledged bytes; beyond 32 bits. */
export const ACKNOWLEDGED = 2 ** 33 + 5;

/** The messages of a batch: the second is moved to an aligned place. */
export const BATCHED: readonly Uint8Array[] = [
  encodeMessage({ a: 1 }),
  encodeMessage({ b: tensor([1, 2], { dtype: "int16" }) }),
];

/** A message that is sent in fragments of this many bytes. */
export const FRAGMENTED = { message: encodeMessage("in two fragments"), id: 3, bytes: 12 } as const;

/** One frame: the bytes of a WebSocket message. */
interface FrameVector {
  name: string;
  hex: string;
}

/** The content of `frames.json`. */
export interface FrameVectors {
  envelopes: Vector[];
  frames: FrameVector[];
}

/** `frames.json` as the current code writes it. */
export function makeFrameVectors(): FrameVectors {
  const envelopes = ENVELOPES.map(({ name, value }) => ({
    ...{ name, hex: encodeMessage(value).toHex() },
    value: describe(value),
  }));
  const frames: [name: string, frame: Uint8Array][] = [
    ...HELLOS.map((hello): [string, Uint8Array] => [`hello, ${hello.role}`, writeHello(hello)]),
    ["bye", writeBye(BYE)],
    ["batch", writeBatch(BATCHED)],
    ...fragments().map((frame, i): [string, Uint8Array] => [`fragment ${i}`, frame]),
    ["acknowledgement", writeAck(ACKNOWLEDGED)],
    ["ping", Uint8Array.of(FRAME.PING)],
    ["pong", Uint8Array.of(FRAME.PONG)],
    ["slot file", writeSlotFile("0123456789abcdef")],
    ["in slot", writeInSlot(5, 70_000)],
    ["slot freed", writeSlotFreed(5)],
  ];
  return { envelopes, frames: frames.map(([name, frame]) => ({ name, hex: frame.toHex() })) };
}

function fragments(): Uint8Array[] {
  const { message, id, bytes } = FRAGMENTED;
  const frames: Uint8Array[] = [];
  for (let offset = 0; offset < message.length; offset += bytes) {
    const part = message.slice(offset, offset + bytes);
    frames.push(Uint8Array.of(...fragmentHead(id, offset, message.length), ...part));
  }
  return frames;
}
