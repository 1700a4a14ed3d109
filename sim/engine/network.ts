/**
 * The simulated network: finds nodes by name and opens links that lose, delay, duplicate, reorder
 * and cut messages. Faults act below the runtime's numbering of envelopes.
 */
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { closedThere, type Connector, type Link, type NodeId } from "../../actors/runtime/link.ts";
import { LeatError } from "../../core/error.ts";
import { MessageSlab } from "../../transport/codec.ts";
import { LINK_LIMITS, type LinkLimits } from "../../transport/limits.ts";
import type { Counters } from "./counters.ts";
import type { Life } from "./life.ts";
import { LinkEnd } from "./link.ts";
import type { FaultOptions } from "../faults/options.ts";
import type { SimRandom } from "./random.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Trace } from "./trace.ts";

/** A message between two nodes. */
export interface OnWire {
  readonly from: string;
  readonly to: string;
  readonly envelope: Envelope;
  /** Its encoded size. */
  readonly bytes: number;
}

/** The time to send messages, if it depends on more than their link. */
export interface Wires {
  /** When a message that is sent now has been sent completely, in µs of virtual time. */
  sentUs(nowUs: number, message: OnWire): number;
}

/** What the parts of a run share. */
interface NetworkDependencies {
  readonly scheduler: Scheduler;
  readonly random: SimRandom;
  readonly trace: Trace;
  readonly counters: Counters;
  readonly faults: FaultOptions;
  readonly limits?: Partial<LinkLimits>;
  /** Default: the links only, with the faults' `bytesPerSecond` in each direction. */
  readonly wires?: Wires;
}

/** A node that accepts links. */
interface Listener {
  readonly life: Life;
  readonly id: NodeId;
  readonly accept: (link: Link) => void;
}

/** The network of a simulated cluster. */
export class SimNetwork {
  readonly scheduler: Scheduler;
  readonly trace: Trace;
  readonly counters: Counters;
  readonly limits: LinkLimits;
  /** Holds messages in one shared buffer, because none moves to another thread. */
  readonly slab = new MessageSlab();
  /** See {@linkcode FaultOptions}; constant for a run. */
  readonly copiesMessages: boolean;
  readonly wires: Wires | undefined;
  readonly #random: SimRandom;
  /** Every name ever listened at; undefined while its node is down. */
  readonly #listeners = new Map<string, Listener | undefined>();
  /** Nodes whose machine is gone: it does not even refuse links. */
  readonly #vanished = new Set<string>();
  readonly #ends = new Set<LinkEnd>();
  /** Cut directions, as `from>to`. */
  #cut: ReadonlySet<string> = new Set();
  /** Clogged nodes and directions. */
  readonly #clogged = new Set<string>();
  /** Messages held by clogs, in the order of arrival. */
  #held: { readonly from: string; readonly to: string; readonly pass: () => void }[] = [];
  /** The faults of each direction, if they differ. */
  readonly #faultsOf = new Map<string, FaultOptions>();
  /** Errors of unreachable nodes and closed links, by message. */
  readonly #errors = new Map<string, LeatError>();
  #faults: FaultOptions;
  #opened = 0;

  constructor(deps: NetworkDependencies) {
    this.scheduler = deps.scheduler;
    this.trace = deps.trace;
    this.counters = deps.counters;
    this.limits = { ...LINK_LIMITS, ...deps.limits };
    this.wires = deps.wires;
    this.#random = deps.random;
    this.#faults = deps.faults;
    this.copiesMessages = deps.faults.copiesMessages;
  }

  /** The current faults. */
  get faults(): FaultOptions {
    return this.#faults;
  }

  /** The faults of messages from one node to another. */
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

  /** The connector of one life of a node. */
  connector(life: Life): Connector {
    return { connect: (node, local) => this.#connect(life, node, local) };
  }

  /** Ends a life: its links are reset, or, if the whole machine is gone, become silent. */
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

  /** From now on exactly these directions (`from>to`) are cut. */
  partition(cut: ReadonlySet<string>): void {
    this.#cut = cut;
    for (const end of this.#ends) if (end.isCut || end.peer.isCut) end.expectSign();
  }

  /** From now on all messages from or to a node, or in a direction (`from>to`), are held. */
  clog(way: string): void {
    this.trace.mark(this.scheduler.nowUs, `${way} clogged`);
    this.#clogged.add(way);
  }

  /** Frees messages that no other clog holds. */
  free(way: string): void {
    if (!this.#clogged.delete(way)) return;
    this.trace.mark(this.scheduler.nowUs, `${way} free`);
    this.#passHeld();
  }

  /** Holds a message; `pass` is called when its way is free again. */
  hold(from: string, to: string, pass: () => void): void {
    this.counters.count("message_held");
    this.#held.push({ from, to, pass });
  }

  /** Ends all cuts and clogs, and sets the faults. */
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

  /** Whether messages in that direction are held. */
  isClogged(from: string, to: string): boolean {
    const clogged = this.#clogged;
    return clogged.size > 0 &&
      (clogged.has(from) || clogged.has(to) || clogged.has(`${from}>${to}`));
  }

  /** Whether that direction (`from>to`) is cut. */
  isCut(way: string): boolean {
    return this.#cut.size > 0 && this.#cut.has(way);
  }

  /** Whether the machine of that name exists and can answer for unknown links. */
  answersFor(node: string): boolean {
    return !this.#vanished.has(node);
  }

  /** Bytes in transit or waiting at their receiver. */
  get bufferedBytes(): number {
    let bytes = 0;
    for (const end of this.#ends) bytes += end.bufferedBytes;
    return bytes;
  }

  /** Forgets a closed link end. */
  forget(end: LinkEnd): void {
    this.#ends.delete(end);
  }

  /** The latency of one message without further faults. */
  delayUs(random: SimRandom, { delayMinMs, delayMaxMs } = this.#faults): number {
    return 1_000 * random.between(delayMinMs, delayMaxMs);
  }

  #connect(life: Life, node: string, local: NodeId): Promise<Link> {
    const { promise, resolve, reject } = Promise.withResolvers<Link>();
    const rng = this.#random.fork(`dial ${life.node} ${life.number} ${++this.#opened}`);
    const fail = (afterMs: number, error: LeatError) => {
      if (error.code === "unavailable") this.counters.count("connect_failed");
      this.trace.mark(this.scheduler.nowUs, `${life.node}>${node} not opened: ${error.code}`);
      life.after(afterMs, "dialling fails", () => reject(error));
    };
    const silence = () =>
      fail(this.#faults.connectTimeoutMs, this.#unreachable(node, "it does not answer"));
    const thereUs = this.scheduler.nowUs + this.delayUs(rng);
    const backMs = this.delayUs(rng) / 1_000;
    this.scheduler.at(thereUs, "dial", () => {
      if (!this.#listeners.has(node)) {
        return fail(backMs, new LeatError("not_found", `There is no node named "${node}"`));
      }
      if (rng.chance(this.#faults.connectFailureProbability)) {
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
      if (life.alive) this.#open(life, local, listener, rng, backMs, resolve);
    });
    return promise;
  }

  /** Why a link is closed that a node, or its machine, does not know any more. */
  resetBy(node: string): LeatError {
    return this.#unavailable(`${node} has reset the link`, closedThere);
  }

  /** Why a link is closed whose other end gives no sign of life. */
  silenceOf(node: string): LeatError {
    return this.#unavailable(`${node} has fallen silent`);
  }

  #unreachable(node: string, why: string): LeatError {
    return this.#unavailable(`Cannot reach ${node}: ${why}`);
  }

  /** One error per message: making an error takes as long as a few messages. */
  #unavailable(message: string, marked = (error: LeatError) => error): LeatError {
    return this.#errors.getOrInsertComputed(
      message,
      () => marked(new LeatError("unavailable", message)),
    );
  }

  /** Whether no message arrives there now. */
  #isMute(from: string, to: string): boolean {
    return this.isCut(`${from}>${to}`) || this.isClogged(from, to);
  }

  #open(
    life: Life,
    local: NodeId,
    listener: Listener,
    rng: SimRandom,
    backMs: number,
    resolve: (link: Link) => void,
  ): void {
    const near = new LinkEnd(this, life, listener.id, rng.fork("near"));
    const far = new LinkEnd(this, listener.life, local, rng.fork("far"));
    near.join(far);
    far.join(near);
    this.#ends.add(near);
    this.#ends.add(far);
    this.trace.mark(this.scheduler.nowUs, `${near.name} opened`);
    listener.life.after(0, "accept", () => listener.accept(far));
    life.after(backMs, "dialled", () => resolve(near));
  }
}

/** A share of all message faults. */
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
