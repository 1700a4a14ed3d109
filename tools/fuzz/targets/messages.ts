/** Input from a socket: frames, messages, envelopes, hellos and compressed messages. */
import { LeatError } from "../../../core/error.ts";
import { tensor } from "../../../core/tensor.ts";
import { decodeMessage, encodeMessage } from "../../../transport/codec.ts";
import { compressFrame, decompressFrame } from "../../../transport/compression.ts";
import { asEnvelope } from "../../../transport/envelopes.ts";
import {
  fragmentHead,
  FRAME,
  readAck,
  readBatch,
  readFragment,
  writeAck,
  writeBatch,
} from "../../../transport/web_socket/frames.ts";
import { type Hello, readHello, writeBye, writeHello } from "../../../transport/hello.ts";
import {
  readInSlot,
  readSlotFile,
  readSlotFreed,
  writeInSlot,
  writeSlotFile,
  writeSlotFreed,
} from "../../../transport/web_socket/slots.ts";
import { Reassembly } from "../../../transport/web_socket/reassembly.ts";
import type { Target } from "../target.ts";

/** Maximum size of a message from an untrusted peer. */
const MESSAGE_BYTES_MAX = 64 * 2 ** 20;

const REF = { node: "ws://127.0.0.1:1", path: "/worker", incarnation: "1" };
const HEAD = { source: REF, target: REF, number: 1 };
const ENVELOPES = [
  { ...HEAD, kind: "tell", method: "wake", body: null },
  { ...HEAD, kind: "ask", method: "hello", id: 1, timeoutMs: 5, open: [1, 2], body: { a: [] } },
  { ...HEAD, kind: "reply", id: 1, body: { x: tensor(new Float32Array(20)), y: 2n ** 40n } },
  { ...HEAD, kind: "failure", id: 1, error: { code: "not_found", message: "no", cause: {} } },
  { ...HEAD, kind: "down", id: 1, error: { code: "unavailable", message: "gone" } },
];

function messages(): [Uint8Array, ...Uint8Array[]] {
  const values = [
    { image: new Uint8Array(300), label: 3, text: "höher", flags: [true, null, -1.5] },
    { ragged: [tensor([1, 2, 3]), tensor(new Int16Array(7))], deep: [[[[["x"]]]]] },
  ];
  const [first, ...others] = [...ENVELOPES, ...values].map((value) => encodeMessage(value));
  return [first!, ...others];
}

/** Returns the frames of an input, in which each frame follows its length. */
function framesIn(input: Uint8Array): Uint8Array[] {
  const frames: Uint8Array[] = [];
  for (let at = 0; at + 2 <= input.length;) {
    const length = input[at]! << 8 | input[at + 1]!;
    frames.push(input.slice(at + 2, at + 2 + length));
    at += 2 + length;
  }
  return frames;
}

function joined(frames: readonly Uint8Array[]): Uint8Array {
  const parts = frames.flatMap((frame) => [frame.length >> 8, frame.length & 0xff, ...frame]);
  return Uint8Array.from(parts);
}

/** Processes the frames of a peer in order, as a link does. */
function takeFrames(input: Uint8Array): void {
  const reassembly = new Reassembly(MESSAGE_BYTES_MAX);
  const take = (message: Uint8Array) => asEnvelope(decodeMessage(message));
  for (const frame of framesIn(input)) {
    switch (frame[0]) {
      case FRAME.BATCH:
        readBatch(frame, take);
        break;
      case FRAME.FRAGMENT: {
        const message = reassembly.add(readFragment(frame));
        if (message !== undefined) take(message);
        break;
      }
      case FRAME.ACK:
        readAck(frame);
        break;
      case FRAME.SLOT_FILE:
        readSlotFile(frame);
        break;
      case FRAME.IN_SLOT:
        readInSlot(frame);
        break;
      case FRAME.SLOT_FREED:
        readSlotFreed(frame);
        break;
      default:
        take(frame);
    }
    if (reassembly.bytes > MESSAGE_BYTES_MAX) throw new Error("holds more than it may");
  }
}

function fragmented(message: Uint8Array): Uint8Array[] {
  const half = message.length >> 1;
  const fragment = (offset: number, length: number) => {
    const part = message.subarray(offset, offset + length);
    return Uint8Array.of(...fragmentHead(7, offset, message.length), ...part);
  };
  return [fragment(0, half), fragment(half, message.length - half)];
}

/** Reads a hello. A goodbye throws the peer's error with any code, which counts as refused. */
function helloOf(input: Uint8Array): Hello {
  try {
    return readHello(input, "dialler");
  } catch (error) {
    if (!(error instanceof LeatError)) throw error;
    throw new LeatError("invalid_argument", error.message);
  }
}

const hello = { node: "ws://127.0.0.1:1", incarnation: "1", messageBytesMax: 1 << 20 };

/** Targets that read messages. */
export const MESSAGE_TARGETS: Readonly<Record<string, Target>> = {
  codec: {
    help: "messages: msgpack envelopes and their payloads",
    open: () => ({
      seeds: messages(),
      run(input) {
        const value = decodeMessage(input);
        // A decoded message must be encodable, and decode to the same value again.
        const again = encodeMessage(value);
        if (Deno.inspect(decodeMessage(again)) !== Deno.inspect(value)) {
          throw new Error("a message that is written again is another one");
        }
      },
    }),
  },
  frames: {
    help: "frames of a connection: batches, fragments, acknowledgements, envelopes",
    open: () => {
      const [a, b, ...rest] = messages();
      return {
        seeds: [
          joined([a, b!]),
          joined([writeBatch(rest), writeAck(1_000)]),
          joined([writeSlotFile("0123456789abcdef"), writeInSlot(1, 70_000), writeSlotFreed(1)]),
          joined(fragmented(rest[0]!)),
        ],
        run: takeFrames,
      };
    },
  },
  hello: {
    help: "the first message of a connection",
    open: () => ({
      seeds: [
        writeHello({ ...hello, role: "dialler" }),
        writeBye(new LeatError("unavailable", "it stops")),
      ],
      run(input) {
        const { node, incarnation } = helloOf(input);
        if (node.length > 1_024 || incarnation.length > 1_024) throw new Error("names too long");
      },
    }),
  },
  compression: {
    help: "compressed messages",
    open: () => {
      const large = encodeMessage({ x: new Float32Array(2_000), y: "leat ".repeat(200) });
      return {
        seeds: [compressFrame(large, "zstd")!, compressFrame(large, "gzip")!],
        run: (input) => decompressFrame(input, MESSAGE_BYTES_MAX),
      };
    },
  },
};
