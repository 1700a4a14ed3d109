/**
 * Slots beside a WebSocket between two processes of one host: the listener writes large messages
 * into a file, and the dialler copies them out of it. `docs/wire.md` specifies the format.
 */
import { uint32At } from "../../core/bytes.ts";
import type { FramePool } from "../codec.ts";
import { SLOT_BYTES_MAX, type SlotFile } from "../process/slots.ts";
import { FRAME, malformed } from "./frames.ts";

/** Slots of a file: a few messages are on their way while one is copied. */
export const NEAR_SLOTS = 8;
/** Smaller messages use the connection, which costs no more for them. */
const SLOT_FROM_BYTES = 64 * 2 ** 10;
/** Larger messages go in fragments: copying one at once would delay other messages. */
export const SLOT_TO_BYTES = 32 * 2 ** 20;

/** The listener's part: what it needs to share slots with diallers of its host. */
export interface NearListener {
  /** The name of its private folder, in the folder for temporary files. */
  readonly folder: string;
  /**
   * Opens the file that a dialler has created there, and unlinks it. `undefined` if that fails: then
   * the connection carries all messages.
   */
  open(name: string): SlotFile | undefined;
}

/** The dialler's part. */
export interface NearDialler {
  /** Creates a file in a listener's private folder. `undefined` if there is no such folder here. */
  create(folder: string): { readonly name: string; readonly file: SlotFile } | undefined;
}

const NAME = /^[0-9a-f]{16}$/;
const TEXT = new TextEncoder();

/** Names the file that the dialler has created. */
export function writeSlotFile(name: string): Uint8Array {
  return Uint8Array.of(FRAME.SLOT_FILE, ...TEXT.encode(name));
}

/** @throws LeatError `invalid_argument` for any name that could lead elsewhere. */
export function readSlotFile(frame: Uint8Array): string {
  const name = new TextDecoder().decode(frame.subarray(1));
  if (!NAME.test(name)) throw malformed("the name of a slot file that is not one");
  return name;
}

export function writeInSlot(slot: number, length: number): Uint8Array {
  const frame = new Uint8Array(9);
  const view = new DataView(frame.buffer);
  view.setUint8(0, FRAME.IN_SLOT);
  view.setUint32(1, slot);
  view.setUint32(5, length);
  return frame;
}

export function readInSlot(frame: Uint8Array): { readonly slot: number; readonly length: number } {
  if (frame.length !== 9) throw malformed(`an announcement of ${frame.length} bytes`);
  return { slot: checkedSlot(uint32At(frame, 1)), length: uint32At(frame, 5) };
}

/** Tells that the message of a slot was copied. */
export function writeSlotFreed(slot: number): Uint8Array {
  const frame = new Uint8Array(5);
  frame[0] = FRAME.SLOT_FREED;
  new DataView(frame.buffer).setUint32(1, slot);
  return frame;
}

export function readSlotFreed(frame: Uint8Array): number {
  if (frame.length !== 5) throw malformed(`a freed slot in ${frame.length} bytes`);
  return checkedSlot(uint32At(frame, 1));
}

function checkedSlot(slot: number): number {
  if (slot >= NEAR_SLOTS) throw malformed(`slot ${slot} of ${NEAR_SLOTS}`);
  return slot;
}

/** The listener's slots of one link. */
export class OutgoingSlots {
  readonly #file: SlotFile;
  /** The slot that was freed last is used first: its memory is in the processor's cache. */
  readonly #free = Array.from({ length: NEAR_SLOTS }, (_, slot) => NEAR_SLOTS - 1 - slot);
  #isBroken = false;

  constructor(file: SlotFile) {
    this.#file = file;
  }

  /** Writes a message, and returns the frame that announces it. `undefined` if no slot can take it. */
  put(message: Uint8Array): Uint8Array | undefined {
    if (message.length < SLOT_FROM_BYTES || message.length > SLOT_TO_BYTES) return undefined;
    const slot = this.#free.at(-1);
    if (slot === undefined || this.#isBroken) return undefined;
    try {
      this.#file.write(slot, [message]);
    } catch {
      // For example on a full disk. From now on the connection carries all messages.
      this.#isBroken = true;
      return undefined;
    }
    this.#free.pop();
    return writeInSlot(slot, message.length);
  }

  /** Notes that the dialler has copied a slot. */
  freed(frame: Uint8Array): void {
    const slot = readSlotFreed(frame);
    if (this.#free.includes(slot)) throw malformed(`slot ${slot} freed, which holds no message`);
    this.#free.push(slot);
  }

  close(): void {
    this.#file.close();
  }
}

/** The dialler's end of a listener's slots. */
export class IncomingSlots {
  readonly #file: SlotFile;
  readonly #bytesMax: number;
  readonly #pool: FramePool;

  /** @param bytesMax A larger message is refused. */
  constructor(file: SlotFile, bytesMax: number, pool: FramePool) {
    this.#file = file;
    this.#bytesMax = Math.min(bytesMax, SLOT_BYTES_MAX, SLOT_TO_BYTES);
    this.#pool = pool;
  }

  /** Copies the announced message, because its writer may change the slot at any time. */
  take(frame: Uint8Array): { readonly message: Uint8Array; readonly freed: Uint8Array } {
    const { slot, length } = readInSlot(frame);
    if (length > this.#bytesMax) throw malformed(`a message of ${length} bytes in a slot`);
    const message = new Uint8Array(this.#pool.take(length));
    this.#file.read(slot, message);
    return { message, freed: writeSlotFreed(slot) };
  }

  close(): void {
    this.#file.close();
  }
}
