/**
 * What a confined process says to its worker: messages through a pipe and a shared file, and what is read out of them.
 *
 * @module
 */
import { LeatError } from "../../../core/error.ts";
import { tensor } from "../../../core/tensor.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";
import {
  ProcessChannel,
  UNTRUSTED_ENVELOPE_BYTES_MAX,
} from "../../../transport/process/channel.ts";
import type { SlotFile } from "../../../transport/process/slots.ts";
import { splitTableOf, steppedOf } from "../../../world/sandbox/untrusted_answers.ts";
import type { Target } from "../target.ts";

/** In the place of a slot: the message follows. */
const PIPED = 0xffff_ffff;
/** What one read of the pipe gives. */
const READ_BYTES = 300;
/** How the rules of the channel, and of what is said on it, are told to be broken. */
const REFUSALS = /^(The other process broke the rules|What a confined process answered is not)/;

/** A shared file that has zeros wherever it is read, as a sparse one. */
const slots = {
  read: (_slot: number, into: Uint8Array) => void into.fill(0, 0, 64),
  write: () => {},
  [Symbol.dispose]: () => {},
} as unknown as SlotFile;

function piped(message: unknown): Uint8Array {
  const bytes = encodeMessage(message);
  const whole = new Uint8Array(8 + bytes.length);
  const view = new DataView(whole.buffer);
  view.setUint32(0, bytes.length, true);
  view.setUint32(4, PIPED, true);
  whole.set(bytes, 8);
  return whole;
}

/** Takes a message for each of what it might be. */
function readAnswer(message: unknown): void {
  for (const read of [steppedOf, splitTableOf]) {
    try {
      read(message);
    } catch (error) {
      if (!(error instanceof LeatError && REFUSALS.test(error.message))) throw error;
    }
  }
}

async function readChannel(input: Uint8Array): Promise<void> {
  let at = 0;
  const channel = new ProcessChannel({
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
  }, { envelopeBytesMax: UNTRUSTED_ENVELOPE_BYTES_MAX });
  await channel.start(readAnswer);
  const why = await channel.closed;
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

/** See the module. */
export const PROCESS_TARGETS: Readonly<Record<string, Target>> = {
  process: {
    help: "what a confined process says to its worker",
    open: () => ({
      seeds: [
        Uint8Array.of(...piped(STEPS[0]), ...piped(STEPS[1])),
        piped(TABLE),
        Uint8Array.of(...piped(TABLE), 100, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80),
      ],
      run: readChannel,
    }),
  },
};
