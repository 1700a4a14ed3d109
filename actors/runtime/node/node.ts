/** A node: keeps the actors, numbers their messages, and sends them. */
import { LeatError, type WireError } from "../../../core/error.ts";
import { RefusalLog } from "../access.ts";
import { RareLog } from "../rare_log.ts";
import type { AskOptions, ChildSpec, WatchDown } from "../actor.ts";
import { type Answer, KeptBytes } from "../asking/answers.ts";
import { Asks, type OpenAsk, settledMarks } from "../asking/asks.ts";
import { copyBody } from "../body.ts";
import { Cell } from "../cell.ts";
import type { CellSystem } from "../cell_system.ts";
import type { AskEnvelope, Envelope } from "../envelope.ts";
import type { Identity } from "../identity.ts";
import {
  type ActorInfo,
  type DropReason,
  type HeldMessages,
  Inspector,
  type Observer,
} from "../inspection.ts";
import type { NodeId } from "../link.ts";
import type { Life } from "./node_actor.ts";
import { Peers, type WatchMessage } from "./peers.ts";
import { Reception, type ReceptionOwner } from "./reception.ts";
import { type FencedRef, formatRef, keyOf, type Ref } from "../ref.ts";
import { Router } from "./router.ts";
import { RunQueue } from "./run_queue.ts";
import type { SystemOptions } from "../system.ts";
import type { World } from "../world.ts";

export class ActorNode implements CellSystem, ReceptionOwner {
  readonly id: NodeId;
  readonly world: World;
  readonly root: Cell;
  readonly router: Router;
  readonly inspector = new Inspector();
  readonly cells = new Map<string, Cell>();
  readonly asks: Asks;
  readonly peers: Peers;
  readonly keptAnswerBytes = new KeptBytes();
  readonly failed: Promise<LeatError>;
  readonly #fail: (error: LeatError) => void;
  readonly #queue: RunQueue;
  readonly #refusals: RefusalLog;
  readonly #dropped: RareLog;
  #lastIncarnation = 0;

  constructor(options: SystemOptions) {
    this.world = options.world;
    this.#refusals = new RefusalLog(options.world);
    this.#dropped = new RareLog(options.world);
    // Not forked: forks with the same label are equal in all nodes and incarnations of a world.
    const incarnation = options.world.random.hex64();
    this.id = { node: options.node, incarnation };
    const failed = Promise.withResolvers<LeatError>();
    this.failed = failed.promise;
    this.#fail = failed.resolve;
    const random = this.world.random.fork(`ask back-off ${incarnation}`);
    this.asks = new Asks(this.world, random, (ask) => this.#sendAsk(ask));
    this.peers = new Peers(
      this.asks,
      (source, target, message) => this.#sendWatch(source, target, message),
    );
    const reception = new Reception(this);
    this.#queue = new RunQueue(
      this.world,
      (envelope, sender) => reception.take(envelope, sender),
    );
    this.router = new Router({
      id: this.id,
      nowMs: () => this.world.nowMs(),
      receive: (envelope, sender) => this.#queue.receive(envelope, sender),
      unreachable: (envelopes, error) => this.#unreachable(envelopes, error),
      refused: (envelope, error) => this.#refused(envelope, error),
      notAdmitted: (identity, error) => this.#refusals.note(identity, error),
      linkChanged: (node, error) => this.peers.linkChanged(node, error),
      linkUp: (node) => {
        this.emit({ type: "link_up", node });
        this.#linkUp(node);
      },
      linkDown: (node, error) => {
        this.emit({ type: "link_down", node, error });
        this.peers.linkDown(node, error);
      },
    }, options);
    const rootSpec: ChildSpec<unknown> = {
      name: "",
      kind: "root",
      create: () => ({ handlers: {} }),
      ...(options.supervision === undefined ? {} : { supervision: options.supervision }),
    };
    this.root = new Cell(this, options.node, undefined, rootSpec);
    this.cells.set(this.root.self.path, this.root);
    this.root.begin();
  }

  actors(): ActorInfo[] {
    return [...this.cells.values()].filter((cell) => cell !== this.root).map((cell) => cell.info);
  }

  get held(): HeldMessages {
    let [waiting, keptAnswers, beingAnswered] = [0, 0, 0];
    for (const cell of this.cells.values()) {
      waiting += cell.mailboxLength;
      keptAnswers += cell.answers.size;
      beingAnswered += cell.beingAnswered;
    }
    return { waiting, openAsks: this.asks.size, keptAnswers, beingAnswered };
  }

  isLinked(node: string): boolean {
    return this.router.isLinked(node);
  }

  /** Whether that incarnation of an actor of this node has ended. */
  isEnded({ path, incarnation }: Life): boolean {
    return this.cells.get(path)?.self.incarnation !== incarnation;
  }

  async stop(): Promise<void> {
    await this.root.terminate(undefined);
    this.asks.clear();
    await this.router.stop();
  }

  newIncarnation(): string {
    return `${this.id.incarnation}-${++this.#lastIncarnation}`;
  }

  // deno-lint-ignore no-explicit-any -- see CellSystem
  startCell(parent: Cell, spec: ChildSpec<any>): Cell {
    const cell = new Cell(this, this.id.node, parent, spec);
    this.cells.set(cell.self.path, cell);
    cell.begin();
    return cell;
  }

  ended(cell: Cell): void {
    if (this.cells.get(cell.self.path) === cell) this.cells.delete(cell.self.path);
    this.peers.ended(cell);
  }

  gaveUp(_cell: Cell, error: LeatError): void {
    this.world.log("error", `Node ${this.id.node} gives up: ${error.message}`);
    this.#fail(error);
  }

  refused(sender: Identity, error: LeatError): void {
    this.#refusals.note(sender, error);
  }

  emit(event: Parameters<Observer>[0]): void {
    if (this.inspector.active) this.inspector.emit(event);
  }

  drop(envelope: Envelope, reason: DropReason): void {
    this.emit({ type: "drop", envelope, reason });
  }

  tell(source: Cell, target: Ref, method: string, body: unknown): void {
    const number = source.sendNumbers.next(keyOf(target));
    // The link may refuse the message for the peer's limits. That must not end the sender.
    this.#postOrDrop({ kind: "tell", source: source.self, target, number, method, body });
  }

  ask(
    source: Cell,
    target: Ref,
    method: string,
    body: unknown,
    options: AskOptions,
  ): Promise<unknown> {
    return this.asks.begin(source, target, method, body, options);
  }

  answer(source: Cell, ask: AskEnvelope, answer: Answer): void {
    const senderKeepsBody = ask.settledBelow !== undefined;
    const header = { ...this.#header(source, ask.source), id: ask.id };
    const envelope: Envelope = answer.kind === "reply"
      ? { ...header, kind: "reply", body: answer.body }
      : { ...header, kind: "failure", error: answer.error };
    try {
      this.#post(envelope, senderKeepsBody);
    } catch (error) {
      this.drop(envelope, "too_large");
      const failure = LeatError.from(error, "internal").toWire();
      const header = this.#header(source, ask.source);
      this.#postOrDrop({ ...header, kind: "failure", id: ask.id, error: failure });
    }
  }

  /** Refuses an envelope that no actor here can take. The root is the sender of the refusal. */
  refuse(envelope: Envelope, error: WireError): void {
    if (envelope.kind === "ask") {
      const header = this.#header(this.root, envelope.source);
      this.#postOrDrop({ kind: "failure", ...header, id: envelope.id, error });
    } else if (envelope.kind === "watch") {
      this.#sendWatch(this.root, envelope.source, { kind: "down", id: envelope.id, error });
    }
  }

  watch(source: Cell, target: Ref, down: WatchDown): () => void {
    return this.peers.watch(source, target, down);
  }

  whenLinked(source: Cell, node: string, up: () => void): () => void {
    const cancel = this.peers.whenLinked(source, node, up);
    if (this.isLinked(node)) this.world.macrotask(() => this.#linkUp(node));
    return cancel;
  }

  tellWatchers(cell: Cell, why: () => LeatError): void {
    this.peers.tellWatchers(cell, why);
  }

  schedule(cell: Cell): void {
    this.#queue.schedule(cell);
  }

  #header(source: Cell, target: Ref): { source: FencedRef; target: Ref; number: number } {
    return {
      source: source.self,
      target,
      number: source.sendNumbers.next(keyOf(target)),
    };
  }

  #sendAsk(ask: OpenAsk): void {
    const { asker, target, targetKey, id, method, body, deadlineMs, attemptMs } = ask;
    const number = asker.sendNumbers.next(targetKey);
    const timeoutMs = Math.max(0, deadlineMs - this.world.nowMs());
    // One object literal: spreading would cost more than everything else here.
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

  /** @throws LeatError when the envelope cannot be sent. */
  #post(envelope: Envelope, senderKeepsBody = false): void {
    this.emit({ type: "send", envelope });
    if (envelope.target.node !== this.id.node) {
      this.router.send(envelope, senderKeepsBody);
      return;
    }
    this.#queue.push(
      "body" in envelope
        ? { ...envelope, body: copyBody(envelope.body, senderKeepsBody) }
        : envelope,
    );
  }

  /**
   * Sends an envelope for which no caller waits. Logs an error, and reports it to a waiting peer.
   */
  #postOrDrop(envelope: Envelope): void {
    try {
      this.#post(envelope);
    } catch (error) {
      this.#refused(envelope, LeatError.from(error, "internal"));
    }
  }

  /** Sends a message about a watch. */
  #sendWatch(source: Cell, target: Ref, message: WatchMessage): void {
    const header = this.#header(source, target);
    const { id } = message;
    this.#postOrDrop(
      message.kind === "down"
        ? { kind: message.kind, ...header, id, error: message.error }
        : { kind: message.kind, ...header, id },
    );
  }

  #unreachable(envelopes: readonly Envelope[], error: LeatError): void {
    for (const envelope of envelopes) {
      this.drop(envelope, "unreachable");
      if (envelope.kind === "ask") {
        const { code, details } = error;
        const refusal = { code, details, error: () => error };
        this.asks.refused(envelope.id, envelope.source.incarnation, refusal);
      } else if (envelope.kind === "watch") {
        this.peers.watchEnded(envelope.id, () => error, "lost");
      }
    }
  }

  /** An envelope that the link cannot carry; a retry would not help. */
  #refused(envelope: Envelope, error: LeatError): void {
    this.drop(envelope, "too_large");
    const { kind, target, source } = envelope;
    this.#dropped.note(target.node, `Dropped a ${kind} for ${formatRef(target)}: ${error.message}`);
    if (kind === "ask") this.asks.fail(envelope.id, source.incarnation, error);
    else if (kind === "watch") this.peers.watchEnded(envelope.id, () => error, "lost");
    else if (kind === "reply") {
      const header = { source, target, number: envelope.number, id: envelope.id };
      this.#postOrDrop({ kind: "failure", ...header, error: error.toWire() });
    }
  }

  #linkUp(node: string): void {
    if (this.isLinked(node)) this.peers.linkUp(node);
  }
}
