/**
 * The network cards of modelled hosts. Each has a bandwidth for all its links together. The bytes that
 * stand for a batch count with the batch's size.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { Payload } from "../../transport/payload.ts";
import type { OnWire, Wires } from "../engine/network.ts";

const US_PER_SECOND = 1e6;

/** One direction of a card. */
interface Lane {
  /** When its last batch has passed, in µs. */
  freeUs: number;
  /** Total time that batches took, in µs. */
  busyUs: number;
}

/** The network cards of all hosts. */
export class ModelledWires implements Wires {
  readonly #bytesPerSecond: number;
  readonly #batchBytes: number;
  readonly #out = new Map<string, Lane>();
  readonly #in = new Map<string, Lane>();

  /** @param bytesPerSecond Bandwidth per direction. If infinite, sending takes no time. */
  constructor(bytesPerSecond: number, batchBytes: number) {
    this.#bytesPerSecond = bytesPerSecond;
    this.#batchBytes = batchBytes;
  }

  /**
   * Returns when a message has been sent. Batches queue at both ends. Other messages are short and pass
   * between the packets of batches. The link keeps them in order with its own batches.
   */
  sentUs(nowUs: number, { from, to, envelope, bytes }: OnWire): number {
    const isBatch = carriesBatch(envelope);
    const takesUs = US_PER_SECOND * (isBatch ? this.#batchBytes : bytes) / this.#bytesPerSecond;
    if (!isBatch) return nowUs + takesUs;
    const outUs = pass(laneOf(this.#out, from), nowUs, takesUs);
    // The receiver's card starts with the first packet, before the last packet is sent.
    return pass(laneOf(this.#in, to), outUs - takesUs, takesUs);
  }

  /** Time that these hosts together have spent sending batches, in ms. */
  sendingMs(hosts: Iterable<string>): number {
    return busyMs(this.#out, hosts);
  }

  /** Time that these hosts together have spent receiving batches, in ms. */
  receivingMs(hosts: Iterable<string>): number {
    return busyMs(this.#in, hosts);
  }
}

/** Adds a transfer of `takesUs` that begins at `fromUs` or later. Returns when it has passed. */
function pass(lane: Lane, fromUs: number, takesUs: number): number {
  lane.freeUs = Math.max(lane.freeUs, fromUs) + takesUs;
  lane.busyUs += takesUs;
  return lane.freeUs;
}

function laneOf(lanes: Map<string, Lane>, host: string): Lane {
  return lanes.getOrInsertComputed(host, () => ({ freeUs: 0, busyUs: 0 }));
}

function busyMs(lanes: ReadonlyMap<string, Lane>, hosts: Iterable<string>): number {
  let busyUs = 0;
  for (const host of hosts) busyUs += lanes.get(host)?.busyUs ?? 0;
  return busyUs / 1_000;
}

function carriesBatch(envelope: Envelope): boolean {
  return envelope.kind === "reply" &&
    (envelope.body as { readonly element?: unknown } | null)?.element instanceof Payload;
}
