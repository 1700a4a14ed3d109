/**
 * An actor system is one node: the actors of one thread or process, and the links to other nodes.
 *
 * @module
 */
import { LeatError, type WireError } from "../../core/error.ts";
import type { AskOptions, ChildSpec, Supervision, WatchDown } from "./actor.ts";
import type { Answer, RepeatableAsk } from "./answers.ts";
import { Asks, type OpenAsk, type Refusal, settledMarks } from "./asks.ts";
import { copyBody } from "./body.ts";
import { Cell, type CellSystem } from "./cell.ts";
import type { AskEnvelope, Envelope } from "./envelope.ts";
import { Fifo } from "./fifo.ts";
import {
  type ActorInfo,
  type DropReason,
  type HeldMessages,
  Inspector,
  type Observer,
} from "./inspection.ts";
import type { Connector, Link, NodeId } from "./link.ts";
import {
  createNodeActor,
  type Life,
  NODE_ACTOR_NAME,
  nodeActorOf,
  type NodeProtocol,
} from "./node_actor.ts";
import { Peers, type WatchWord } from "./peers.ts";
import type { AnswerOf, MethodOf, RequestOf } from "./protocol.ts";
import { type FencedRef, formatRef, keyOf, type Ref } from "./ref.ts";
import { Router } from "./router.ts";
import type { World } from "./world.ts";

/** Turns taken in one macrotask before timers and sockets get their chance. */
const TURNS_PER_MACROTASK = 128;
/** How long a node may take to say which of its actors have ended, in ms; else it is asked another time. */
const ENDED_TIMEOUT_MS = 5_000;

/** Makes an actor from plain data, so that another node can have one started here. */
// deno-lint-ignore no-explicit-any -- kinds speak different protocols
export type ActorKind = (config: any) => Omit<ChildSpec<any>, "name">;

/** How to set up a node. */
export interface SystemOptions {
  /** The node's name: unique among those it talks to; its URL where it listens on a socket. */
  readonly node: string;
  readonly world: World;
  /** Opens links on demand. Without it only nodes with an attached link can be reached. */
  readonly connector?: Connector;
  /** What other nodes may have started here through `/node`; default nothing. */
  readonly kinds?: Readonly<Record<string, ActorKind>>;
  /** How the node treats its top-level actors. */
  readonly supervision?: Supervision;
}

/**
 * One node of actors.
 *
 * Its promise about messages: at most once, and in order between one sender and one receiver. An ask
 * always ends, by an answer or an error. Nothing else is promised, on any carrier.
 */
export class ActorSystem implements AsyncDisposable {
  readonly id: NodeId;
  readonly world: World;
  /** Resolves when the top-level actors died too often to be restarted. */
  readonly failed: Promise<LeatError>;
  readonly #core: Core;

  constructor(options: SystemOptions) {
    this.world = options.world;
    this.#core = new Core(options);
    this.id = this.#core.id;
    this.failed = this.#core.failed;
    const kinds = options.kinds ?? {};
    this.spawn<NodeProtocol>({
      name: NODE_ACTOR_NAME,
      create: (context) =>
        createNodeActor(context, {
          kinds,
          root: this.#core.root,
          list: () => this.actors(),
          isEnded: (life) => this.#core.isEnded(life),
        }),
    });
  }

  /** Starts a top-level actor. */
  spawn<P>(spec: ChildSpec<P>): FencedRef<P> {
    return this.#core.root.spawn(spec);
  }

  /** Stops a top-level actor. */
  stopActor(name: string): Promise<void> {
    return this.#core.root.stopChild(name);
  }

  /** Sends from outside any actor. See `ActorContext.tell`. */
  tell<P, M extends MethodOf<P>>(target: Ref<P>, method: M, request: RequestOf<P, M>): void {
    this.#core.root.tell(target, method, request);
  }

  /** Asks from outside any actor. See `ActorContext.ask`. */
  ask<P, M extends MethodOf<P>>(
    target: Ref<P>,
    method: M,
    request: RequestOf<P, M>,
    options: AskOptions,
  ): Promise<AnswerOf<P, M>> {
    return this.#core.root.ask(target, method, request, options);
  }

  /** Watches from outside any actor. See `ActorContext.watch`. */
  watch(target: Ref, down: WatchDown): () => void {
    return this.#core.root.watch(target, down);
  }

  /** Takes a link to another node into use. */
  attach(link: Link): void {
    this.#core.router.attach(link);
  }

  /** The nodes there is a link to now. */
  get linkedNodes(): string[] {
    return this.#core.router.nodes;
  }

  /** Sees everything the runtime does on this node; the answer stops it. */
  inspect(observer: Observer): () => void {
    return this.#core.inspector.observe(observer);
  }

  /** The actors that live on this node. */
  actors(): ActorInfo[] {
    return this.#core.actors();
  }

  /** What this node holds of messages now. */
  get held(): HeldMessages {
    return this.#core.held;
  }

  /** Stops all actors in reverse order of starting, then closes the links. */
  stop(): Promise<void> {
    return this.#core.stop();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }
}

/** The machinery behind a system, apart from what its users see. */
class Core implements CellSystem {
  readonly id: NodeId;
  readonly world: World;
  readonly root: Cell;
  readonly router: Router;
  readonly inspector = new Inspector();
  readonly failed: Promise<LeatError>;
  readonly #fail: (error: LeatError) => void;
  readonly #cells = new Map<string, Cell>();
  readonly #asks: Asks;
  readonly #peers: Peers;
  readonly #local = new Fifo<Envelope>();
  readonly #runnable = new Fifo<Cell>();
  #lastIncarnation = 0;
  #scheduled = false;
  #draining = false;

  constructor(options: SystemOptions) {
    this.world = options.world;
    // Drawn, not forked: a fork of the same name is the same in every node and life of one world.
    const incarnation = options.world.random.hex64();
    this.id = { node: options.node, incarnation };
    const failed = Promise.withResolvers<LeatError>();
    this.failed = failed.promise;
    this.#fail = failed.resolve;
    const luck = this.world.random.fork(`ask back-off ${incarnation}`);
    this.#asks = new Asks(this.world, luck, (ask) => this.#sendAsk(ask));
    this.#peers = new Peers(this.#asks, (source, target, word) => this.#say(source, target, word));
    this.router = new Router({
      id: this.id,
      receive: (envelope) => this.#receive(envelope),
      unreachable: (envelopes, error) => this.#unreachable(envelopes, error),
      refused: (envelope, error) => this.#refused(envelope, error),
      linkChanged: (node, error) => this.#peers.linkChanged(node, error),
      linkUp: (node) => {
        this.emit({ type: "link_up", node });
        this.#linkUp(node);
      },
      linkDown: (node, error) => {
        this.emit({ type: "link_down", node, error });
        this.#peers.linkDown(node, error);
      },
    }, options.connector);
    const rootSpec: ChildSpec<unknown> = {
      name: "",
      kind: "root",
      create: () => ({ handlers: {} }),
      ...(options.supervision === undefined ? {} : { supervision: options.supervision }),
    };
    this.root = new Cell(this, options.node, undefined, rootSpec);
    this.#cells.set(this.root.self.path, this.root);
    this.root.begin();
  }

  actors(): ActorInfo[] {
    return [...this.#cells.values()].filter((cell) => cell !== this.root).map((cell) => cell.info);
  }

  get held(): HeldMessages {
    let [waiting, keptAnswers, beingAnswered] = [0, 0, 0];
    for (const cell of this.#cells.values()) {
      waiting += cell.mailboxLength;
      keptAnswers += cell.answers.size;
      beingAnswered += cell.beingAnswered;
    }
    return { waiting, openAsks: this.#asks.size, keptAnswers, beingAnswered };
  }

  /** Whether that life of an actor of this node has ended. */
  isEnded({ path, incarnation }: Life): boolean {
    return this.#cells.get(path)?.self.incarnation !== incarnation;
  }

  async stop(): Promise<void> {
    await this.root.terminate(undefined);
    this.#asks.clear();
    await this.router.stop();
  }

  newIncarnation(): string {
    return `${this.id.incarnation}-${++this.#lastIncarnation}`;
  }

  // deno-lint-ignore no-explicit-any -- see CellSystem
  startCell(parent: Cell, spec: ChildSpec<any>): Cell {
    const cell = new Cell(this, this.id.node, parent, spec);
    this.#cells.set(cell.self.path, cell);
    cell.begin();
    return cell;
  }

  ended(cell: Cell): void {
    if (this.#cells.get(cell.self.path) === cell) this.#cells.delete(cell.self.path);
    this.#peers.ended(cell);
  }

  gaveUp(_cell: Cell, error: LeatError): void {
    this.world.log("error", `Node ${this.id.node} gives up: ${error.message}`);
    this.#fail(error);
  }

  emit(event: Parameters<Observer>[0]): void {
    if (this.inspector.active) this.inspector.emit(event);
  }

  drop(envelope: Envelope, reason: DropReason): void {
    this.emit({ type: "drop", envelope, reason });
  }

  tell(source: Cell, target: Ref, method: string, body: unknown): void {
    const number = source.numbers.next(keyOf(target));
    this.#post({ kind: "tell", source: source.self, target, number, method, body });
  }

  ask(
    source: Cell,
    target: Ref,
    method: string,
    body: unknown,
    options: AskOptions,
  ): Promise<unknown> {
    return this.#asks.begin(source, target, method, body, options);
  }

  answer(source: Cell, ask: AskEnvelope, answer: Answer): void {
    const kept = ask.settledBelow !== undefined;
    const header = { ...this.#header(source, ask.source), id: ask.id };
    const envelope: Envelope = answer.kind === "reply"
      ? { ...header, kind: "reply", body: answer.body }
      : { ...header, kind: "failure", error: answer.error };
    try {
      this.#post(envelope, kept);
    } catch (error) {
      this.drop(envelope, "too_large");
      const failure = LeatError.from(error, "internal").toWire();
      const header = this.#header(source, ask.source);
      this.#postOrDrop({ ...header, kind: "failure", id: ask.id, error: failure });
    }
  }

  watch(source: Cell, target: Ref, down: WatchDown): () => void {
    return this.#peers.watch(source, target, down);
  }

  whenLinked(source: Cell, node: string, up: () => void): () => void {
    const cancel = this.#peers.whenLinked(source, node, up);
    if (this.router.isLinked(node)) this.world.macrotask(() => this.#linkUp(node));
    return cancel;
  }

  tellWatchers(cell: Cell, why: () => LeatError): void {
    this.#peers.tellWatchers(cell, why);
  }

  schedule(cell: Cell): void {
    if (cell.queued) return;
    cell.queued = true;
    this.#runnable.push(cell);
    if (!this.#draining) this.#wake();
  }

  #header(source: Cell, target: Ref): { source: FencedRef; target: Ref; number: number } {
    return {
      source: source.self,
      target,
      number: source.numbers.next(keyOf(target)),
    };
  }

  #sendAsk(ask: OpenAsk): void {
    const { asker, target, targetKey, id, method, body, deadlineMs, attemptMs } = ask;
    const number = asker.numbers.next(targetKey);
    const timeoutMs = Math.max(0, deadlineMs - this.world.nowMs());
    // In one piece: to spread parts into it would take longer than all else here.
    const source = asker.self;
    if (attemptMs === undefined) {
      this.#post({ kind: "ask", source, target, number, id, method, body, timeoutMs });
      return;
    }
    const { settledBelow, open } = settledMarks(ask);
    const envelope: AskEnvelope = {
      kind: "ask",
      source,
      target,
      number,
      id,
      method,
      body,
      timeoutMs,
      settledBelow,
    };
    this.#post(open === undefined ? envelope : { ...envelope, open }, true);
  }

  /** @throws LeatError when the envelope cannot travel. */
  #post(envelope: Envelope, kept = false): void {
    this.emit({ type: "send", envelope });
    if (envelope.target.node !== this.id.node) {
      this.router.send(envelope, kept);
      return;
    }
    this.#local.push(
      "body" in envelope ? { ...envelope, body: copyBody(envelope.body, kept) } : envelope,
    );
    this.#wake();
  }

  /** For envelopes that nobody could be told about. */
  #postOrDrop(envelope: Envelope): void {
    try {
      this.#post(envelope);
    } catch (error) {
      this.#refused(envelope, LeatError.from(error, "internal"));
    }
  }

  /** A word about a watch. */
  #say(source: Cell, target: Ref, word: WatchWord): void {
    const header = this.#header(source, target);
    const { id } = word;
    this.#postOrDrop(
      word.kind === "down"
        ? { kind: word.kind, ...header, id, error: word.error }
        : { kind: word.kind, ...header, id },
    );
  }

  /** An envelope from a link: it is already a macrotask of its own. */
  #receive(envelope: Envelope): void {
    this.#dispatch(envelope);
    this.#drain(0);
  }

  #wake(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.world.macrotask(() => {
      this.#scheduled = false;
      this.#drain(this.#local.length);
    });
  }

  #drain(deliveries: number): void {
    if (this.#draining) return;
    this.#draining = true;
    try {
      this.#takeTurns(deliveries);
    } finally {
      this.#draining = false;
      if (this.#runnable.length > 0 || this.#local.length > 0) this.#wake();
    }
  }

  /** Takes turns, then delivers up to `deliveries` local envelopes and takes the turns they cause. */
  #takeTurns(deliveries: number): void {
    let left = deliveries;
    const turnsMax = this.world.fault("system.one_turn") ? 1 : TURNS_PER_MACROTASK;
    for (let steps = 0; steps < turnsMax; steps++) {
      const cell = this.#runnable.shift();
      if (cell !== undefined) {
        cell.queued = false;
        if (cell.turn()) this.schedule(cell);
        continue;
      }
      // What is sent in this macrotask is delivered in a later one: the continuations of those who
      // sent it run first, as they do on every other carrier.
      const envelope = left-- > 0 ? this.#local.shift() : undefined;
      if (envelope === undefined) break;
      this.#dispatch(envelope);
    }
  }

  #dispatch(envelope: Envelope): void {
    switch (envelope.kind) {
      case "reply":
      case "failure":
        return this.#dispatchAnswer(envelope);
      case "down":
        return this.#peers.watchEnded(
          envelope.id,
          () => LeatError.fromWire(envelope.error),
          "ended",
        );
      default:
        return this.#dispatchToActor(envelope);
    }
  }

  #dispatchAnswer(envelope: Extract<Envelope, { kind: "reply" | "failure" }>): void {
    const asker = this.#cells.get(envelope.target.path);
    if (asker !== undefined && !this.#accept(asker, envelope)) return;
    const incarnation = envelope.target.incarnation;
    const wanted = envelope.kind === "reply"
      ? this.#asks.answered(envelope.id, incarnation, envelope.body)
      : this.#asks.refused(envelope.id, incarnation, refusalOf(envelope.error));
    if (wanted) this.emit({ type: "deliver", envelope });
    else this.drop(envelope, "unwanted_reply");
  }

  #dispatchToActor(envelope: Exclude<Envelope, { kind: "reply" | "failure" | "down" }>): void {
    const { target } = envelope;
    const cell = this.#cells.get(target.path);
    // The root stands for whoever asks from outside any actor: it is watched, and hears nothing.
    const isHeard = cell !== this.root || envelope.kind === "watch" || envelope.kind === "unwatch";
    if (
      cell === undefined || !isHeard || cell.state === "stopping" || cell.state === "stopped"
    ) {
      const restarting = this.#isRestarting(target.path);
      this.drop(envelope, restarting ? "restarting" : "no_such_actor");
      this.#refuse(
        envelope,
        restarting ? { code: "unavailable", message: `${formatRef(target)} is restarting` } : {
          code: "not_found",
          message: `There is no actor ${formatRef(target)}`,
          details: { reason: "no_such_actor" },
        },
      );
      return;
    }
    if (target.incarnation !== undefined && target.incarnation !== cell.self.incarnation) {
      this.drop(envelope, "stale_incarnation");
      this.#refuse(
        envelope,
        {
          code: "failed_precondition",
          message: `${formatRef(target)} is gone; ${formatRef(cell.self)} has taken its place`,
          details: { reason: "stale_incarnation", incarnation: cell.self.incarnation },
        },
      );
      return;
    }
    if (!this.#accept(cell, envelope)) return;
    if (envelope.kind === "tell") cell.enqueue(envelope);
    else if (envelope.kind === "ask") this.#dispatchAsk(cell, envelope);
    else this.#peers.watched(cell, envelope);
  }

  #dispatchAsk(cell: Cell, envelope: AskEnvelope): void {
    if (envelope.settledBelow !== undefined) {
      const nowMs = this.world.nowMs();
      const known = cell.answers.begin(envelope.source, envelope as RepeatableAsk, nowMs);
      if (cell.answers.isLookDue(nowMs)) this.#findEndedAskers(cell, nowMs);
      if (known === "pending") return;
      if (known !== "new") return this.answer(cell, envelope, known);
    }
    cell.enqueue(envelope);
  }

  /**
   * Finds out which of those that a cell has answered have ended. Only their own node knows: one that
   * cannot be reached may live, and ask again.
   */
  #findEndedAskers(cell: Cell, nowMs: number): void {
    for (const [node, askers] of Map.groupBy(cell.answers.quiet(nowMs), ({ node }) => node)) {
      if (node === this.id.node) {
        for (const asker of askers) if (this.isEnded(asker)) cell.askerEnded(asker.incarnation);
      } else if (this.router.isLinked(node)) {
        const lives = askers.map(({ path, incarnation }) => ({ path, incarnation }));
        cell.ask(nodeActorOf(node), "ended", { lives }, { timeoutMs: ENDED_TIMEOUT_MS }).then(
          (answer) => {
            const ended = new Set(answer);
            for (const { incarnation } of lives) {
              if (ended.has(incarnation)) cell.askerEnded(incarnation);
            }
          },
          // It is asked again, later.
          () => {},
        );
      }
    }
  }

  #accept(cell: Cell, envelope: Envelope): boolean {
    const missing = cell.marks.accept(envelope.source.incarnation, envelope.number);
    if (missing < 0) this.drop(envelope, "not_newer");
    else if (missing > 0) this.emit({ type: "gap", envelope, missing });
    return missing >= 0;
  }

  /** Whether the actor at that path may be there soon: it, or one above it, is ending or coming back. */
  #isRestarting(path: string): boolean {
    if (path === this.root.self.path) return false;
    if (this.#cells.has(path)) return true;
    const slash = Math.max(0, path.lastIndexOf("/"));
    const parentPath = path.slice(0, slash) || this.root.self.path;
    const parent = this.#cells.get(parentPath);
    if (parent === undefined) return this.#isRestarting(parentPath);
    return parent.state !== "running" || parent.children.get(path.slice(slash + 1)) !== undefined;
  }

  /** Answers what nobody here can take, in the root's name. */
  #refuse(envelope: Envelope, error: WireError): void {
    if (envelope.kind === "ask") {
      const header = this.#header(this.root, envelope.source);
      this.#postOrDrop({ kind: "failure", ...header, id: envelope.id, error });
    } else if (envelope.kind === "watch") {
      this.#say(this.root, envelope.source, { kind: "down", id: envelope.id, error });
    }
  }

  #unreachable(envelopes: readonly Envelope[], error: LeatError): void {
    for (const envelope of envelopes) {
      this.drop(envelope, "unreachable");
      if (envelope.kind === "ask") {
        const { code, details } = error;
        const refusal = { code, details, error: () => error };
        this.#asks.refused(envelope.id, envelope.source.incarnation, refusal);
      } else if (envelope.kind === "watch") {
        this.#peers.watchEnded(envelope.id, () => error, "lost");
      }
    }
  }

  /** An envelope that the link cannot carry: trying again would not help. */
  #refused(envelope: Envelope, error: LeatError): void {
    this.drop(envelope, "too_large");
    const { kind, target, source } = envelope;
    this.world.log("warn", `Dropped a ${kind} for ${formatRef(target)}: ${error.message}`);
    if (kind === "ask") this.#asks.fail(envelope.id, source.incarnation, error);
    else if (kind === "watch") this.#peers.watchEnded(envelope.id, () => error, "lost");
    else if (kind === "reply") {
      const header = { source, target, number: envelope.number, id: envelope.id };
      this.#postOrDrop({ kind: "failure", ...header, error: error.toWire() });
    }
  }

  #linkUp(node: string): void {
    if (this.router.isLinked(node)) this.#peers.linkUp(node);
  }
}

function refusalOf(wire: WireError): Refusal {
  const { code, details } = wire;
  return { code, details, error: () => LeatError.fromWire(wire) };
}
