/** Handles an arrived envelope: puts it in a mailbox, settles an ask or a watch, or drops it. */
import { LeatError, type WireError } from "../../../core/error.ts";
import type { Answer, RepeatableAsk } from "../asking/answers.ts";
import type { Asks, Refusal } from "../asking/asks.ts";
import type { Cell } from "../cell.ts";
import type { AskEnvelope, Envelope } from "../envelope.ts";
import { type Identity, senderKeyOf } from "../identity.ts";
import type { DropReason, InspectionEvent } from "../inspection.ts";
import type { NodeId } from "../link.ts";
import { type Life, nodeActorOf } from "./node_actor.ts";
import { type Peers, WATCH_REFUSED } from "./peers.ts";
import { formatRef } from "../ref.ts";
import type { World } from "../world.ts";

/** Time limit for a node to say which of its actors have ended, in ms. It is asked again later. */
const ENDED_TIMEOUT_MS = 5_000;

type AnswerEnvelope = Extract<Envelope, { kind: "reply" | "failure" | "down" }>;

export interface ReceptionOwner {
  readonly id: NodeId;
  readonly world: World;
  /** Its actors, by path. */
  readonly cells: ReadonlyMap<string, Cell>;
  readonly root: Cell;
  readonly asks: Asks;
  readonly peers: Peers;
  isLinked(node: string): boolean;
  /** Whether that incarnation of an actor of this node has ended. */
  isEnded(life: Life): boolean;
  answer(source: Cell, ask: AskEnvelope, answer: Answer): void;
  /** Refuses an envelope that no actor here can take. */
  refuse(envelope: Envelope, error: WireError): void;
  drop(envelope: Envelope, reason: DropReason): void;
  emit(event: InspectionEvent): void;
}

export class Reception {
  readonly #owner: ReceptionOwner;

  constructor(owner: ReceptionOwner) {
    this.#owner = owner;
  }

  take(envelope: Envelope, sender: Identity): void {
    switch (envelope.kind) {
      case "reply":
      case "failure":
        if (!this.#mayAnswer(envelope, sender)) return this.#owner.drop(envelope, "not_permitted");
        return this.#takeAnswer(envelope, sender);
      case "down":
        if (!this.#mayAnswer(envelope, sender)) return this.#owner.drop(envelope, "not_permitted");
        return this.#owner.peers.watchEnded(
          envelope.id,
          () => LeatError.fromWire(envelope.error),
          envelope.error.details?.["reason"] === WATCH_REFUSED ? "lost" : "ended",
        );
      default:
        return this.#takeForActor(envelope, sender);
    }
  }

  /**
   * Only the node that was asked or is watched may answer. Admins are not checked: a dispatcher may
   * have two names, because it was dialled by one address and dials from another.
   */
  #mayAnswer({ kind, id, source }: AnswerEnvelope, { role }: Identity): boolean {
    if (role === "admin") return true;
    const { asks, peers } = this.#owner;
    return kind === "down" ? peers.isWatchOf(id, source.node) : asks.isAskedOf(id, source.node);
  }

  #takeAnswer(
    envelope: Extract<Envelope, { kind: "reply" | "failure" }>,
    sender: Identity,
  ): void {
    const { cells, asks } = this.#owner;
    const asker = cells.get(envelope.target.path);
    if (asker !== undefined && !this.#accept(asker, envelope, sender)) return;
    const incarnation = envelope.target.incarnation;
    const wanted = envelope.kind === "reply"
      ? asks.answered(envelope.id, incarnation, envelope.body)
      : asks.refused(envelope.id, incarnation, refusalOf(envelope.error));
    if (wanted) this.#owner.emit({ type: "deliver", envelope });
    else this.#owner.drop(envelope, "unwanted_reply");
  }

  #takeForActor(
    envelope: Exclude<Envelope, { kind: "reply" | "failure" | "down" }>,
    sender: Identity,
  ): void {
    const { cells, root, peers } = this.#owner;
    const { target } = envelope;
    const cell = cells.get(target.path);
    // The root stands for callers outside actors: it can be watched, but takes no messages.
    const canReceive = cell !== root || envelope.kind === "watch" || envelope.kind === "unwatch";
    if (
      cell === undefined || !canReceive || cell.state === "stopping" || cell.state === "stopped"
    ) {
      return this.#refuseAsGone(envelope);
    }
    if (target.incarnation !== undefined && target.incarnation !== cell.self.incarnation) {
      return this.#refuseAsStale(envelope, cell);
    }
    if (!this.#accept(cell, envelope, sender)) return;
    if (envelope.kind === "tell") cell.enqueue(envelope, sender);
    else if (envelope.kind === "ask") this.#takeAsk(cell, envelope, sender);
    else peers.watched(cell, envelope, sender);
  }

  #refuseAsGone(envelope: Envelope): void {
    const { target } = envelope;
    const restarting = this.#isRestarting(target.path);
    this.#owner.drop(envelope, restarting ? "restarting" : "no_such_actor");
    this.#owner.refuse(
      envelope,
      restarting ? { code: "unavailable", message: `${formatRef(target)} is restarting` } : {
        code: "not_found",
        message: `There is no actor ${formatRef(target)}`,
        details: { reason: "no_such_actor" },
      },
    );
  }

  #refuseAsStale(envelope: Envelope, { self }: Cell): void {
    this.#owner.drop(envelope, "stale_incarnation");
    this.#owner.refuse(envelope, {
      code: "failed_precondition",
      message: `${formatRef(envelope.target)} is gone; ${formatRef(self)} has taken its place`,
      details: { reason: "stale_incarnation", incarnation: self.incarnation },
    });
  }

  /** Whether an actor may soon be at that path: it or an ancestor is ending or restarting. */
  #isRestarting(path: string): boolean {
    // No actor ever has another form of path, such as "//worker".
    if (!/^(?:\/[^/]+)+$/.test(path)) return false;
    // From the root, so that a path of a peer costs only as much as the part of it that exists.
    let parent = this.#owner.root;
    for (const name of path.slice(1).split("/")) {
      const child = parent.children.get(name);
      if (child?.cell === undefined) return child !== undefined || parent.state !== "running";
      parent = child.cell;
    }
    return true;
  }

  #takeAsk(cell: Cell, envelope: AskEnvelope, sender: Identity): void {
    if (envelope.settledBelow !== undefined) {
      const nowMs = this.#owner.world.nowMs();
      const { source } = envelope;
      const known = cell.answers.begin(source, sender, envelope as RepeatableAsk, nowMs);
      if (cell.answers.isIdleCheckDue(nowMs)) this.#findEndedAskers(cell, nowMs);
      if (known === "pending") return;
      if (known !== "new") return this.#owner.answer(cell, envelope, known);
    }
    cell.enqueue(envelope, sender);
  }

  /**
   * Asks the nodes of idle askers which of the askers have ended. An asker on an unreachable node counts
   * as alive: it may repeat its ask.
   */
  #findEndedAskers(cell: Cell, nowMs: number): void {
    const owner = this.#owner;
    for (const [node, askers] of Map.groupBy(cell.answers.idleAskers(nowMs), ({ node }) => node)) {
      if (node === owner.id.node) {
        for (const asker of askers) if (owner.isEnded(asker)) cell.askerEnded(asker.key);
      } else if (owner.isLinked(node)) {
        const lives = askers.map(({ path, incarnation }) => ({ path, incarnation }));
        cell.ask(nodeActorOf(node), "ended", { lives }, { timeoutMs: ENDED_TIMEOUT_MS }).then(
          (answer) => {
            // The node may not be trusted: its answer can have any shape.
            const ended = new Set<unknown>(Array.isArray(answer) ? answer : []);
            for (const { incarnation, key } of askers) {
              if (ended.has(incarnation)) cell.askerEnded(key);
            }
          },
          // The next check asks the node again.
          () => {},
        );
      }
    }
  }

  #accept(cell: Cell, envelope: Envelope, sender: Identity): boolean {
    const key = senderKeyOf(envelope.source.incarnation, sender);
    const missing = cell.receiveMarks.accept(key, envelope.number);
    if (missing < 0) this.#owner.drop(envelope, "not_newer");
    else if (missing > 0) this.#owner.emit({ type: "gap", envelope, missing });
    return missing >= 0;
  }
}

function refusalOf(wire: WireError): Refusal {
  const { code, details } = wire;
  return { code, details, error: () => LeatError.fromWire(wire) };
}
