/**
 * The simulated network: finds nodes by name and opens links between them that lose, delay,
 * duplicate, reorder and cut what they carry. Faults act below the runtime's numbering of envelopes.
 *
 * @module
 */
import type { Envelope } from "../actors/runtime/envelope.ts";
import { closedThere, type Connector, type Link, type NodeId } from "../actors/runtime/link.ts";
import { LeatError } from "../core/error.ts";
import { MessageSlab } from "../transport/codec.ts";
import { LINK_LIMITS, type LinkLimits } from "../transport/limits.ts";
import type { Counters } from "./counters.ts";
import type { Life } from "./life.ts";
import { LinkEnd } from "./link.ts";
import type { FaultOptions } from "./options.ts";
import type { SimRandom } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Trace } from "./trace.ts";

/** A message on its way from one node to another. */
export interface OnWire {
  readonly from: string;
  readonly to: string;
  readonly envelope: Envelope;
  /** Its size, encoded. */
  readonly bytes: number;
}

/** How long messages are being sent, where that depends on more than the link that they go over. */
export interface Wires {
  /** When a message that is sent now has been sent whole, in µs of virtual time. */
  sentUs(nowUs: number, message: OnWire): number;
}

/** What the parts of a run share. */
export interface NetworkSurroundings {
  readonly scheduler: Scheduler;
  readonly random: SimRandom;
  readonly trace: Trace;
  readonly counters: Counters;
  readonly faults: FaultOptions;
  readonly limits?: Partial<LinkLimits>;
  /** Default: links alone, which carry `bytesPerSecond` of the faults in each direction. */
  readonly wires?: Wires;
}

/** A node that can be dialled. */
interface Listener {
  readonly life: Life;
  readonly id: NodeId;
  readonly accept: (link: Link) => void;
}

/** See the module. */
export class SimNetwork {
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly counters: Counters;
  readonly limits: LinkLimits;
  /** Where messages lie: one behind the other, since none is moved to another thread. */
  readonly slab = new MessageSlab();
  /** See {@linkcode FaultOptions}; the same for the whole run. */
  readonly copiesMessages: boolean;
  readonly wires: Wires | undefined;
  readonly #random: SimRandom;
  /** Every name ever listened at; undefined while nobody does. */
  readonly #listeners = new Map<string, Listener | undefined>();
  /** Nodes whose machine is gone: nobody answers there, not even with a refusal. */
  readonly #vanished = new Set<string>();
  readonly #ends = new Set<LinkEnd>();
  /** Directions, as `from>to`, in which nothing passes. */
  #cut: ReadonlySet<string> = new Set();
  /** Nodes, and directions, in which all waits. */
  readonly #clogged = new Set<string>();
  /** What has come to the end of a clogged way, in the order in which it did. */
  #held: { readonly from: string; readonly to: string; readonly pass: () => void }[] = [];
  /** What messages meet in each direction, where they are not alike. */
  readonly #faultsOf = new Map<string, FaultOptions>();
  /** Why nodes could not be reached and links were closed, by what it says. */
  readonly #errors = new Map<string, LeatError>();
  #faults: FaultOptions;
  #opened = 0;

  constructor(around: NetworkSurroundings) {
    this.scheduler = around.scheduler;
    this.trace = around.trace;
    this.counters = around.counters;
    this.limits = { ...LINK_LIMITS, ...around.limits };
    this.wires = around.wires;
    this.#random = around.random;
    this.#faults = around.faults;
    this.copiesMessages = around.faults.copiesMessages;
  }

  /** The faults in force. */
  get faults(): FaultOptions {
    return this.#faults;
  }

  /** What messages from one node to another meet. */
  faultsOf(from: string, to: string): FaultOptions {
    const { directionShareMin } = this.#faults;
    if (directionShareMin === 1) return this.#faults;
    const direction = `${from}>${to}`;
    let faults = this.#faultsOf.get(direction);
    if (faults === undefined) {
      const share = this.#random.fork(`share ${direction}`).between(directionShareMin, 1);
      this.counters.count("direction_unlike");
      this.#faultsOf.set(direction, faults = shareOf(this.#faults, share));
    }
    return faults;
  }

  /** Lets other nodes dial this one. */
  listen(life: Life, id: NodeId, accept: (link: Link) => void): void {
    this.#vanished.delete(life.node);
    this.#listeners.set(life.node, { life, id, accept });
  }

  /** What one life of a node opens links with. */
  connector(life: Life): Connector {
    return { connect: (node, local) => this.#connect(life, node, local) };
  }

  /** The life is over: its links are reset, or, if the whole machine is gone, fall silent. */
  crash(life: Life, silent: boolean): void {
    this.#listeners.set(life.node, undefined);
    if (silent) this.#vanished.add(life.node);
    for (const end of [...this.#ends]) {
      if (end.life !== life) continue;
      this.counters.count(silent ? "link_silent" : "link_reset");
      this.#ends.delete(end);
      if (silent) end.peer.expectSign();
      else end.resetPeer(this.resetBy(life.node));
    }
  }

  /** From now on nothing passes in these directions (`from>to`), and everything in all others. */
  partition(cut: ReadonlySet<string>): void {
    this.#cut = cut;
    for (const end of this.#ends) if (end.isCut || end.peer.isCut) end.expectSign();
  }

  /** From now on all waits that goes from or to a node, or in a direction (`from>to`). */
  clog(way: string): void {
    this.trace.mark(this.scheduler.nowUs, `${way} clogged`);
    this.#clogged.add(way);
  }

  /** What waits there goes on, if no other clog holds it. */
  free(way: string): void {
    if (!this.#clogged.delete(way)) return;
    this.trace.mark(this.scheduler.nowUs, `${way} free`);
    this.#passHeld();
  }

  /** Something has come to the end of a clogged way: `pass` is called when that is free again. */
  hold(from: string, to: string, pass: () => void): void {
    this.counters.count("message_held");
    this.#held.push({ from, to, pass });
  }

  /** Ends all trouble: no cuts, no clogs, and only these faults. */
  heal(faults: FaultOptions): void {
    this.partition(new Set());
    this.#clogged.clear();
    this.#passHeld();
    this.#faults = faults;
    this.#faultsOf.clear();
  }

  #passHeld(): void {
    const held = this.#held;
    this.#held = held.filter(({ from, to }) => this.isClogged(from, to));
    for (const { from, to, pass } of held) {
      if (!this.isClogged(from, to)) this.scheduler.at(this.scheduler.nowUs, "message", pass);
    }
  }

  /** Whether all waits in that direction. */
  isClogged(from: string, to: string): boolean {
    const clogged = this.#clogged;
    return clogged.size > 0 &&
      (clogged.has(from) || clogged.has(to) || clogged.has(`${from}>${to}`));
  }

  /** Whether nothing passes in that direction (`from>to`). */
  isCut(way: string): boolean {
    return this.#cut.size > 0 && this.#cut.has(way);
  }

  /** Whether the machine of that name is there to answer for links that it knows nothing of. */
  answersFor(node: string): boolean {
    return !this.#vanished.has(node);
  }

  /** Bytes that are on their way, or wait at their receiver's. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const end of this.#ends) bytes += end.bufferedBytes;
    return bytes;
  }

  /** A link end is closed for good. */
  forget(end: LinkEnd): void {
    this.#ends.delete(end);
  }

  /** How long one message takes, if nothing holds it up. */
  delayUs(random: SimRandom, { delayMinMs, delayMaxMs } = this.#faults): number {
    return 1_000 * random.between(delayMinMs, delayMaxMs);
  }

  #connect(life: Life, node: string, local: NodeId): Promise<Link> {
    const { promise, resolve, reject } = Promise.withResolvers<Link>();
    const luck = this.#random.fork(`dial ${life.node} ${life.number} ${++this.#opened}`);
    const fail = (afterMs: number, error: LeatError) => {
      if (error.code === "unavailable") this.counters.count("connect_failed");
      this.trace.mark(this.scheduler.nowUs, `${life.node}>${node} not opened: ${error.message}`);
      life.after(afterMs, "dialling fails", () => reject(error));
    };
    const silence = () =>
      fail(this.#faults.connectTimeoutMs, this.#unreachable(node, "it does not answer"));
    const thereUs = this.scheduler.nowUs + this.delayUs(luck);
    const backMs = this.delayUs(luck) / 1_000;
    this.scheduler.at(thereUs, "dial", () => {
      if (!this.#listeners.has(node)) {
        return fail(backMs, new LeatError("not_found", `There is no node named "${node}"`));
      }
      if (luck.chance(this.#faults.connectFailureProbability)) {
        return fail(backMs, this.#unreachable(node, "the attempt failed"));
      }
      if (
        this.#isMute(life.node, node) || this.#isMute(node, life.node) || !this.answersFor(node)
      ) {
        return silence();
      }
      const listener = this.#listeners.get(node);
      if (listener === undefined) {
        this.counters.count("connect_refused");
        return fail(backMs, this.#unreachable(node, "nobody listens there"));
      }
      if (life.alive) this.#open(life, local, listener, luck, backMs, resolve);
    });
    return promise;
  }

  /** Why a link is closed that a node, or its machine, knows nothing of any more. */
  resetBy(node: string): LeatError {
    return this.#unavailable(`${node} has reset the link`, closedThere);
  }

  /** Why a link is given up whose other end gives no sign. */
  silenceOf(node: string): LeatError {
    return this.#unavailable(`${node} has fallen silent`);
  }

  #unreachable(node: string, why: string): LeatError {
    return this.#unavailable(`Cannot reach ${node}: ${why}`);
  }

  /** One for all of the same words: making an error takes as long as a few messages. */
  #unavailable(message: string, marked = (error: LeatError) => error): LeatError {
    let error = this.#errors.get(message);
    if (error === undefined) {
      this.#errors.set(message, error = marked(new LeatError("unavailable", message)));
    }
    return error;
  }

  /** Whether nothing gets there now. */
  #isMute(from: string, to: string): boolean {
    return this.isCut(`${from}>${to}`) || this.isClogged(from, to);
  }

  #open(
    life: Life,
    local: NodeId,
    listener: Listener,
    luck: SimRandom,
    backMs: number,
    resolve: (link: Link) => void,
  ): void {
    const near = new LinkEnd(this, life, listener.id, luck.fork("near"));
    const far = new LinkEnd(this, listener.life, local, luck.fork("far"));
    near.join(far);
    far.join(near);
    this.#ends.add(near);
    this.#ends.add(far);
    this.trace.mark(this.scheduler.nowUs, `${near.name} opened`);
    listener.life.after(0, "accept", () => listener.accept(far));
    life.after(backMs, "dialled", () => resolve(near));
  }
}

/** A part of all that messages meet. */
function shareOf(faults: FaultOptions, share: number): FaultOptions {
  return {
    ...faults,
    lossProbability: share * faults.lossProbability,
    duplicateProbability: share * faults.duplicateProbability,
    reorderProbability: share * faults.reorderProbability,
    delayMaxMs: faults.delayMinMs + share * (faults.delayMaxMs - faults.delayMinMs),
    clogProbability: share * faults.clogProbability,
    linkBreakProbability: share * faults.linkBreakProbability,
    linkCloseProbability: share * faults.linkCloseProbability,
  };
}
