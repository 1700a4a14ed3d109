/**
 * The simulated network. It finds nodes by name, and opens links that lose, delay, duplicate, reorder
 * and cut messages. The runtime numbers envelopes before these faults act.
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

/** Computes the time to send messages, if it depends on more than their link. */
export interface Wires {
  /** Returns when the last byte of a message that is sent now leaves, in µs of virtual time. */
  sentUs(nowUs: number, message: OnWire): number;
}

/** What the network needs from its run. */
interface NetworkDependencies {
  readonly scheduler: Scheduler;
  readonly random: SimRandom;
  readonly trace: Trace;
  readonly counters: Counters;
  readonly faults: FaultOptions;
  readonly limits?: Partial<LinkLimits>;
  /** Default: each direction of a link has the faults' `bytesPerSecond`. */
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
  /** The buffer of all messages. They can share it, because none moves to another thread. */
  readonly slab = new MessageSlab();
  /** See {@linkcode FaultOptions}; constant for a run. */
  readonly copiesMessages: boolean;
  readonly wires: Wires | undefined;
  readonly #random: SimRandom;
  /** The listeners by name, of all nodes that ever listened; undefined while the node is down. */
  readonly #listeners = new Map<string, Listener | undefined>();
  /** Nodes whose machine is gone, so that it does not even refuse links. */
  readonly #vanished = new Set<string>();
  readonly #ends = new Set<LinkEnd>();
  /** Cut directions, as `from>to`. */
  #cut: ReadonlySet<string> = new Set();
  /** Clogged nodes and directions. */
  readonly #clogged = new Set<string>();
  /** Messages held by clogs, in order of arrival. */
  #held: { readonly from: string; readonly to: string; readonly pass: () => void }[] = [];
  /** The faults of each direction, if directions differ. */
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

  /** Returns the faults of messages from one node to another. */
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

  /** Lets other nodes dial this node. */
  listen(life: Life, id: NodeId, accept: (link: Link) => void): void {
    this.#vanished.delete(life.node);
    this.#listeners.set(life.node, { life, id, accept });
  }

  /** Returns the connector of one life of a node. */
  connector(life: Life): Connector {
    return { connect: (node, local) => this.#connect(life, node, local) };
  }

  /** Ends a life. Its links are reset, or become silent if the whole machine is gone. */
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

  /** Cuts exactly these directions (`from>to`), and ends all other cuts. */
  partition(cut: ReadonlySet<string>): void {
    this.#cut = cut;
    for (const end of this.#ends) if (end.isCut || end.peer.isCut) end.expectSign();
  }

  /** Starts to hold all messages from or to a node, or in a direction (`from>to`). */
  clog(scope: string): void {
    this.trace.mark(this.scheduler.nowUs, `${scope} clogged`);
    this.#clogged.add(scope);
  }

  /** Ends a clog, and passes the messages that no other clog holds. */
  free(scope: string): void {
    if (!this.#clogged.delete(scope)) return;
    this.trace.mark(this.scheduler.nowUs, `${scope} free`);
    this.#passHeld();
  }

  /** Holds a message, and calls `pass` when no clog holds it. */
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
  isCut(direction: string): boolean {
    return this.#cut.size > 0 && this.#cut.has(direction);
  }

  /** Whether the machine of that name exists, and so resets links that it does not know. */
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

  /** Draws the latency of a message without further faults. */
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
    const failSilently = () =>
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
        return failSilently();
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

  /** Returns the error of a link that the node at its other end does not know any more. */
  resetBy(node: string): LeatError {
    return this.#unavailable(`${node} has reset the link`, closedThere);
  }

  /** Returns the error of a link whose other end is silent. */
  silenceOf(node: string): LeatError {
    return this.#unavailable(`${node} has fallen silent`);
  }

  #unreachable(node: string, why: string): LeatError {
    return this.#unavailable(`Cannot reach ${node}: ${why}`);
  }

  /** Returns one error per text, because making an error takes as long as a few messages. */
  #unavailable(message: string, marked = (error: LeatError) => error): LeatError {
    return this.#errors.getOrInsertComputed(
      message,
      () => marked(new LeatError("unavailable", message)),
    );
  }

  /** Whether no message from one node arrives at the other now. */
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

/** Returns the faults with a share of all message faults. */
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
    linkHalfCloseProbability: share * faults.linkHalfCloseProbability,
  };
}
