/**
 * One end of a simulated link. Every envelope is encoded to bytes here and decoded at the other end, as
 * on a socket. Runs with `copiesMessages` copy it instead, with the same result.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { ANYONE } from "../../actors/runtime/identity.ts";
import type { Link, NodeId } from "../../actors/runtime/link.ts";
import { LeatError } from "../../core/error.ts";
import { decodeMessage, encodeMessage } from "../../transport/codec.ts";
import { messageTooLarge } from "../../transport/limits.ts";
import { WaterMarks } from "../../transport/water_marks.ts";
import type { Life } from "./life.ts";
import { copyMessage, type MessageCopy } from "./message_copy.ts";
import type { SimNetwork } from "./network.ts";
import type { FaultOptions } from "../faults/options.ts";
import type { SimRandom } from "./random.ts";

/** An envelope on its way to the other end. */
interface Transfer {
  readonly envelope: Envelope;
  readonly content: Content;
}

/** An envelope in transit: its bytes, or a copy. */
type Content = Uint8Array | MessageCopy;

/** An end of a link between two nodes. */
export class LinkEnd implements Link {
  readonly remote: NodeId;
  readonly identity = ANYONE;
  readonly life: Life;
  readonly closed: Promise<LeatError>;
  /** The direction from here to the other end, as the trace names it. */
  readonly name: string;
  readonly #network: SimNetwork;
  readonly #random: SimRandom;
  readonly #settle: (error: LeatError) => void;
  readonly #buffered: WaterMarks;
  /** Messages that arrived before `start`. Their bytes count in the sender's `bufferedBytes`. */
  readonly #early: Transfer[] = [];
  #peer!: LinkEnd;
  #receive: ((envelope: Envelope) => void) | undefined;
  #isClosed = false;
  #isSevered = false;
  #expectsSign = false;
  /** Arrival time of the newest in-order message. The next one arrives no earlier. */
  #lastArrivalUs = 0;
  /** When the last byte of all sent messages has left, if sending takes time. */
  #sentUs = 0;
  #cloggedUntilUs = 0;
  /** The faults of this direction. */
  #ownFaults: FaultOptions | undefined;
  /** The network's faults from which `#ownFaults` was computed. */
  #baseFaults: FaultOptions | undefined;

  constructor(network: SimNetwork, life: Life, remote: NodeId, random: SimRandom) {
    this.#network = network;
    this.life = life;
    this.remote = remote;
    this.name = `${life.node}>${remote.node}`;
    this.#random = random;
    this.#buffered = new WaterMarks(network.limits);
    const closed = Promise.withResolvers<LeatError>();
    this.closed = closed.promise;
    this.#settle = closed.resolve;
  }

  get bufferedBytes(): number {
    return this.#buffered.bytes;
  }

  get peer(): LinkEnd {
    return this.#peer;
  }

  /** Whether nothing passes from here to the other end. */
  get isCut(): boolean {
    return this.#isSevered || this.#network.isCut(this.name);
  }

  /** The faults of messages from here to the other end. */
  get #faults(): FaultOptions {
    const { faults } = this.#network;
    if (this.#baseFaults !== faults) {
      this.#baseFaults = faults;
      this.#ownFaults = this.#network.faultsOf(this.life.node, this.remote.node);
    }
    return this.#ownFaults!;
  }

  /** Breaks the link in both directions without notice to either end. */
  sever(): void {
    for (const end of [this, this.#peer]) {
      end.#isSevered = true;
      end.expectSign();
    }
  }

  join(peer: LinkEnd): void {
    this.#peer = peer;
  }

  start(receive: (envelope: Envelope) => void): void {
    this.life.after(0, "link start", () => {
      this.#receive = receive;
      for (const transfer of this.#early.splice(0)) this.#take(transfer);
    });
  }

  send(envelope: Envelope): boolean {
    if (this.#isClosed || !this.life.alive) return false;
    this.#transmit(envelope, this.#contentOf(envelope));
    return true;
  }

  ready(): Promise<void> {
    return this.#buffered.ready();
  }

  close(reason = new LeatError("cancelled", "The link was closed")): void {
    if (this.#isClosed || !this.life.alive) return;
    this.#end(reason);
    this.resetPeer(LeatError.fromWire(reason.toWire()));
  }

  /** Closes the other end after the latency of a message. */
  resetPeer(reason: LeatError): void {
    const network = this.#network;
    const peer = this.#peer;
    network.scheduler.at(this.#arrivalUs(), "reset", () => {
      if (this.isCut) peer.expectSign();
      else peer.life.after(0, "reset", () => peer.#end(reason));
    });
  }

  /** Closes the link if the other end cannot be reached after the keepalive timeout. */
  expectSign(): void {
    if (this.#expectsSign || this.#isClosed || !this.life.alive) return;
    this.#expectsSign = true;
    this.life.after(this.#network.faults.silenceMs, "keepalive", () => {
      this.#expectsSign = false;
      const peer = this.#peer;
      const silent = !peer.life.alive || peer.#isClosed || peer.isCut || this.isCut;
      if (silent) this.#end(this.#network.silenceOf(this.remote.node));
    });
  }

  #contentOf(envelope: Envelope): Content {
    const { limits: { messageBytesMax }, copiesMessages, slab } = this.#network;
    const copy = copiesMessages ? copyMessage(envelope, slab) : undefined;
    const content = copy ?? encodeMessage(envelope, { slab });
    if (content.byteLength > messageBytesMax) {
      throw messageTooLarge(envelope, content.byteLength, messageBytesMax);
    }
    return content;
  }

  #transmit(envelope: Envelope, content: Content): void {
    const { trace, counters, scheduler } = this.#network;
    const faults = this.#faults;
    const rng = this.#random;
    if (this.isCut) {
      counters.count("message_cut");
      return trace.envelope(scheduler.nowUs, this.name, "cut", envelope, content);
    }
    if (this.#buffered.bytes + content.byteLength > faults.inFlightBytesMax) {
      counters.count("message_overflow");
      return trace.envelope(scheduler.nowUs, this.name, "overflow", envelope, content);
    }
    if (rng.chance(faults.lossProbability)) {
      counters.count("message_lost");
      return trace.envelope(scheduler.nowUs, this.name, "lost", envelope, content);
    }
    trace.envelope(scheduler.nowUs, this.name, "sent", envelope, content);
    this.#clog(faults);
    this.#breakDown(faults);
    this.#closeBetween(faults);
    this.#closeOneEnd(faults);
    const sentUs = this.#sendUs(envelope, content.byteLength);
    this.#carry({ envelope, content }, this.#arrivalOfNextUs(sentUs));
    if (rng.chance(faults.duplicateProbability)) {
      counters.count("message_duplicated");
      trace.envelope(scheduler.nowUs, this.name, "duplicated", envelope);
      // The duplicate has its own content, because a decoded message consists of views of its bytes.
      this.#carry({ envelope, content: this.#contentOf(envelope) }, this.#stragglerUs());
    }
  }

  #breakDown({ linkBreakProbability }: FaultOptions): void {
    const { counters, scheduler, trace } = this.#network;
    if (!this.#random.chance(linkBreakProbability)) return;
    counters.count("link_broken");
    trace.mark(scheduler.nowUs, `${this.name} broken`);
    this.sever();
  }

  /** Closes the link as a proxy between the ends does. Each end sees the other end close it. */
  #closeBetween({ linkCloseProbability }: FaultOptions): void {
    if (linkCloseProbability === 0 || !this.#random.chance(linkCloseProbability)) return;
    const network = this.#network;
    const { counters, scheduler, trace } = network;
    counters.count("link_closed");
    trace.mark(scheduler.nowUs, `${this.name} closed between`);
    for (const end of [this, this.#peer]) end.resetPeer(network.resetBy(end.life.node));
  }

  /** Closes one end, and severs the link: the other end learns it from the silence alone. */
  #closeOneEnd({ linkHalfCloseProbability }: FaultOptions): void {
    const rng = this.#random;
    if (linkHalfCloseProbability === 0 || !rng.chance(linkHalfCloseProbability)) return;
    const { counters, scheduler, trace } = this.#network;
    const end = rng.chance(0.5) ? this : this.#peer;
    counters.count("link_half_closed");
    trace.mark(scheduler.nowUs, `${this.name} closed at ${end.life.node} alone`);
    end.life.after(0, "reset", () => end.#end(this.#network.resetBy(end.remote.node)));
    this.sever();
  }

  #clog({ clogProbability, clogMaxMs }: FaultOptions): void {
    const { counters, scheduler } = this.#network;
    if (!this.#random.chance(clogProbability)) return;
    counters.count("link_clogged");
    this.#cloggedUntilUs = scheduler.nowUs + 1_000 * this.#random.between(0, clogMaxMs);
  }

  #carry(transfer: Transfer, arrivalUs: number): void {
    this.#buffered.add(transfer.content.byteLength);
    this.#network.scheduler.at(arrivalUs, "message", () => this.#arrive(transfer));
  }

  #arrive(transfer: Transfer): void {
    const { scheduler, trace, counters } = this.#network;
    const { envelope } = transfer;
    const peer = this.#peer;
    const { node } = this.life;
    if (this.#network.isClogged(node, this.remote.node)) {
      this.#network.hold(node, this.remote.node, () => this.#arrive(transfer));
    } else if (this.isCut) {
      counters.count("message_cut");
      trace.envelope(scheduler.nowUs, this.name, "cut", envelope);
      this.#releaseBytes(transfer);
    } else if (!peer.life.alive || peer.#isClosed) {
      this.#refused(transfer);
    } else if (peer.life.pausedUntilUs > scheduler.nowUs) {
      // The message waits in the paused node's memory, and is lost if the node crashes.
      peer.life.at(scheduler.nowUs, "message", () => peer.#deliver(transfer));
    } else {
      peer.life.spend();
      peer.#deliver(transfer);
    }
  }

  /** A message has come to an end that is closed: its machine, if it still exists, resets this end. */
  #refused(transfer: Transfer): void {
    const { scheduler, trace } = this.#network;
    trace.envelope(scheduler.nowUs, this.name, "dead", transfer.envelope);
    this.#releaseBytes(transfer);
    if (this.#network.answersFor(this.remote.node)) {
      this.#peer.resetPeer(this.#network.resetBy(this.remote.node));
    }
  }

  /** Delivers a message from the other end, or keeps it until there is a receiver. */
  #deliver(transfer: Transfer): void {
    // It may have closed while the message waited in the paused node's memory.
    if (this.#isClosed) return this.#peer.#refused(transfer);
    const { scheduler, trace } = this.#network;
    trace.envelope(scheduler.nowUs, this.#peer.name, "delivered", transfer.envelope);
    if (this.#receive === undefined) this.#early.push(transfer);
    else this.#take(transfer);
  }

  #take(transfer: Transfer): void {
    if (this.#isClosed) return;
    this.#peer.#releaseBytes(transfer);
    const { content } = transfer;
    const message = content instanceof Uint8Array ? decodeMessage(content) : content.value;
    this.#receive!(message as Envelope);
  }

  /** Stops counting the bytes of a message that this end sent, because it has left the transit. */
  #releaseBytes({ content }: Transfer): void {
    if (!this.#isClosed) this.#buffered.remove(content.byteLength);
  }

  /** Returns when the last byte of a message leaves, after the messages before it. */
  #sendUs(envelope: Envelope, bytes: number): number {
    const { scheduler: { nowUs }, wires, faults: { bytesPerSecond } } = this.#network;
    if (wires !== undefined) {
      return wires.sentUs(nowUs, { from: this.life.node, to: this.remote.node, envelope, bytes });
    }
    if (bytesPerSecond === undefined) return nowUs;
    this.#sentUs = Math.max(this.#sentUs, nowUs) + Math.round(1e6 * bytes / bytesPerSecond);
    return this.#sentUs;
  }

  /** Returns when the next message arrives: after the previous one, unless it is reordered. */
  #arrivalOfNextUs(sentUs: number): number {
    const { counters } = this.#network;
    if (!this.#random.chance(this.#faults.reorderProbability)) return this.#arrivalUs(sentUs);
    counters.count("message_reordered");
    return this.#stragglerUs();
  }

  /** Returns when a message arrives that keeps its order. */
  #arrivalUs(sentUs = this.#network.scheduler.nowUs): number {
    const freeUs = Math.max(this.#lastArrivalUs, this.#cloggedUntilUs);
    this.#lastArrivalUs = Math.max(
      freeUs,
      sentUs + this.#network.delayUs(this.#random, this.#faults),
    );
    return this.#lastArrivalUs;
  }

  /** Returns when a message arrives that others may overtake. */
  #stragglerUs(): number {
    const { scheduler } = this.#network;
    const faults = this.#faults;
    const delayUs = this.#network.delayUs(this.#random, this.#faults);
    return scheduler.nowUs + delayUs + 1_000 * this.#random.between(0, faults.reorderDelayMaxMs);
  }

  #end(reason: LeatError): void {
    if (this.#isClosed || !this.life.alive) return;
    this.#isClosed = true;
    const { scheduler, trace } = this.#network;
    trace.mark(scheduler.nowUs, `${this.name} closed: ${reason.code}`);
    this.#network.forget(this);
    this.#early.length = 0;
    this.#buffered.release();
    this.#settle(reason);
  }
}
