/**
 * Answers of a confined process to its worker, which are messages through a pipe and a shared file.
 */
import { LeatError } from "../../../core/error.ts";
import { tensor } from "../../../core/tensor.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import { writeHello } from "../../../transport/hello.ts";
import { freedFrame, pipedFrames, slotFrame } from "../../../transport/process/frames.ts";
import { openProcessLink, UNTRUSTED_ENVELOPE_BYTES_MAX } from "../../../transport/process/link.ts";
import type { SlotFile } from "../../../transport/process/slots.ts";
import { splitBoundsOf, steppedOf } from "../../../platform/sandbox/untrusted_answers.ts";
import type { Target } from "../target.ts";

/** Bytes of one read of the pipe. */
const READ_BYTES = 300;
/** Messages of protocol errors of the link, and of invalid answers. */
const REFUSALS = /^(The other process violated its protocol|What a confined process sent is not)/;

/** A shared file that reads as zeros everywhere, as a sparse file does. */
const slots = {
  read: (_slot: number, into: Uint8Array) => void into.fill(0, 0, 64),
  write: () => {},
  close: () => {},
} as SlotFile;

const LOCAL = { node: "worker", incarnation: "1" };
const REMOTE = { node: "runner", incarnation: "2" };
const HEAD = {
  source: { node: "runner", path: "/edge", incarnation: "2-1" },
  target: { node: "worker", path: "/edge" },
  number: 1,
};

/** Makes the bytes of a runner's reply in the pipe. */
function reply(body: unknown): Uint8Array {
  return pipedFrames([encodeMessage({ ...HEAD, kind: "reply", id: 1, body })]);
}

const HELLO = pipedFrames([writeHello({ ...REMOTE, role: "dialler", messageBytesMax: 2 ** 30 })]);

/** Reads a message as each kind of answer. */
function readAnswer(message: unknown): void {
  for (const read of [steppedOf, splitBoundsOf]) {
    try {
      read(message);
    } catch (error) {
      if (!(error instanceof LeatError && REFUSALS.test(error.message))) throw error;
    }
  }
}

async function readLink(input: Uint8Array): Promise<void> {
  let at = 0;
  const streams = {
    incoming: {
      read() {
        const part = input.subarray(at, at + READ_BYTES);
        at += part.length;
        return Promise.resolve(part.length === 0 ? undefined : part);
      },
      close: () => {},
    },
    outgoing: { write: () => {}, close: () => {} },
    incomingSlots: slots,
    outgoingSlots: slots,
  };
  const options = { envelopeBytesMax: UNTRUSTED_ENVELOPE_BYTES_MAX };
  const why = await openProcessLink(streams, LOCAL, "listener", options).then((link) => {
    link.start((envelope) => readAnswer("body" in envelope ? envelope.body : undefined));
    return link.closed;
  }, LeatError.from);
  if (why.code === "unavailable") return;
  if (REFUSALS.test(why.message)) throw new LeatError("invalid_argument", why.message);
  throw why;
}

const element = new Payload(encodeMessage({ x: tensor([1, 2, 3]) }));
const STEPS = [
  { outcome: { kind: "element", frame: element }, bytesRead: 10 },
  {
    outcome: { kind: "error", error: { code: "data_loss", message: "damaged" }, isFinal: true },
    bytesRead: 0,
    usage: { cpuSeconds: 0.5, memoryBytes: 1_000 },
  },
];
const TABLE = [{ starts: new Float64Array([0, 5]), stops: new Float64Array([5, 9]) }];

/** Targets that read answers of confined processes. */
export const PROCESS_TARGETS: Readonly<Record<string, Target>> = {
  process: {
    help: "what a confined process says to its worker",
    open: () => ({
      seeds: [
        Uint8Array.of(...HELLO, ...reply(STEPS[0]), ...reply(STEPS[1])),
        Uint8Array.of(...HELLO, ...reply(TABLE)),
        Uint8Array.of(...HELLO, ...reply(TABLE), ...slotFrame(100, 1), ...freedFrame(0)),
      ],
      run: readLink,
    }),
  },
};
