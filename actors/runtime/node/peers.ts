/**
 * What a node holds until a link or an actor ends: watches by its actors, watches of its actors,
 * open asks, and callbacks that wait for a link.
 */
import { LeatError } from "../../../core/error.ts";
import type { WatchDown, WatchEnd } from "../actor.ts";
import type { Asks } from "../asking/asks.ts";
import type { Cell } from "../cell.ts";
import type { DownEnvelope, WatchEnvelope } from "../envelope.ts";
import { type Hold, Holdings } from "../asking/groups.ts";
import { isClosedThere } from "../link.ts";
import { type Identity, SAME_PROCESS, senderKeyOf } from "../identity.ts";
import type { FencedRef, Ref } from "../ref.ts";

/** Limit of another node's watches of actors here. Each takes memory until it or its link ends. */
export const WATCHERS_MAX = 16_384;

/** The `details.reason` of a refused watch. It does not tell whether the target runs. */
export const WATCH_REFUSED = "watch_refused";

/** A message about a watch, without the numbering of a particular envelope. */
export type WatchMessage =
  | Pick<WatchEnvelope, "kind" | "id">
  | Pick<DownEnvelope, "kind" | "id" | "error">;

interface Watch {
  readonly id: number;
  readonly watcher: Cell;
  readonly target: Ref;
  readonly down: WatchDown;
}

interface Watcher {
  readonly key: string;
  readonly ref: FencedRef;
  readonly id: number;
}

export class Peers {
  readonly #asks: Asks;
  readonly #sendWatch: (source: Cell, target: Ref, message: WatchMessage) => void;
  readonly #watches = new Holdings<Watch>();
  readonly #watchesById = new Map<number, Hold<Watch>>();
  readonly #watchers = new Holdings<Watcher>();
  readonly #watchersByKey = new Map<string, Hold<Watcher>>();
  readonly #linkWaits = new Holdings<() => void>();
  #lastWatch = 0;

  /** @param send Sends a message or drops it; does not throw. */
  constructor(asks: Asks, send: (source: Cell, target: Ref, message: WatchMessage) => void) {
    this.#asks = asks;
    this.#sendWatch = send;
  }

  watch(watcher: Cell, target: Ref, down: WatchDown): () => void {
    const id = ++this.#lastWatch;
    const watch = this.#watches.add(target.node, watcher, { id, watcher, target, down });
    this.#watchesById.set(id, watch);
    this.#sendWatch(watcher, target, { kind: "watch", id });
    return () => this.#cancel(watch);
  }

  /** Whether the watch with that id is on that node; also true if there is no such watch. */
  isWatchOf(id: number, node: string): boolean {
    const watch = this.#watchesById.get(id);
    return watch === undefined || watch.item.target.node === node;
  }

  watchEnded(id: number, why: () => LeatError, end: WatchEnd): void {
    const watch = this.#watchesById.get(id);
    if (watch !== undefined) this.#down(watch, why, end);
  }

  /** Another actor starts or stops watching an actor of this node. */
  watched(cell: Cell, { kind, source, id }: WatchEnvelope, sender: Identity): void {
    const key = `${cell.self.incarnation} ${senderKeyOf(source.incarnation, sender)} ${id}`;
    const known = this.#watchersByKey.get(key);
    if (kind === "unwatch") {
      if (known !== undefined) this.#forget(known);
    } else if (known === undefined) {
      const isOfOther = sender !== SAME_PROCESS;
      if (isOfOther && this.#watchers.countOfNode(source.node) >= WATCHERS_MAX) {
        const error = new LeatError(
          "resource_exhausted",
          `${source.node} watches ${WATCHERS_MAX} actors of this node already`,
          { details: { reason: WATCH_REFUSED } },
        );
        return this.#sendWatch(cell, source, { kind: "down", id, error: error.toWire() });
      }
      const watcher = this.#watchers.add(source.node, cell, { key, ref: source, id });
      this.#watchersByKey.set(key, watcher);
    }
  }

  /** Tells the watchers of an actor of this node that it is gone. */
  tellWatchers(cell: Cell, why: () => LeatError): void {
    for (const { item: { ref, id } } of this.#watchers.ofActor(cell)) {
      this.#sendWatch(cell, ref, { kind: "down", id, error: why().toWire() });
    }
  }

  /** See `ActorContext.whenLinked`. */
  whenLinked(waiter: Cell, node: string, up: () => void): () => void {
    const wait = this.#linkWaits.add(node, waiter, up);
    return () => {
      this.#linkWaits.release(wait);
    };
  }

  linkUp(node: string): void {
    for (const wait of this.#linkWaits.ofNode(node)) {
      if (this.#linkWaits.release(wait)) wait.item();
    }
  }

  /** One link to the node is lost, another is left: refuses the asks in flight, and renews the watches. */
  linkChanged(node: string, error: LeatError): void {
    this.#asks.nodeLost(node, { code: "unavailable", error: lostLink(node, error) });
    for (const { item: { id, watcher, target } } of this.#watches.ofNode(node)) {
      this.#sendWatch(watcher, target, { kind: "watch", id });
    }
  }

  linkDown(node: string, error: LeatError): void {
    const lost = lostLink(node, error);
    const end = isClosedThere(error) ? "closed" : "lost";
    this.#asks.nodeLost(node, { code: "unavailable", error: lost });
    for (const watch of this.#watches.ofNode(node)) this.#down(watch, lost, end);
    // The other node tells its watchers itself.
    for (const watcher of this.#watchers.ofNode(node)) this.#forget(watcher);
  }

  /** An actor of this node has ended: releases what is held for it. */
  ended(cell: Cell): void {
    this.#asks.askerEnded(cell);
    for (const watch of this.#watches.ofActor(cell)) this.#cancel(watch);
    for (const watcher of this.#watchers.ofActor(cell)) this.#forget(watcher);
    for (const wait of this.#linkWaits.ofActor(cell)) this.#linkWaits.release(wait);
  }

  /** Ends a watch, and tells the other node, which would keep it until the target ends. */
  #cancel(watch: Hold<Watch>): void {
    const { id, watcher, target } = watch.item;
    if (this.#unwatch(watch)) this.#sendWatch(watcher, target, { kind: "unwatch", id });
  }

  #down(watch: Hold<Watch>, why: () => LeatError, end: WatchEnd): void {
    if (this.#unwatch(watch)) watch.item.down(why(), end);
  }

  /** Returns false if the watch had ended before. */
  #unwatch(watch: Hold<Watch>): boolean {
    this.#watchesById.delete(watch.item.id);
    return this.#watches.release(watch);
  }

  #forget(watcher: Hold<Watcher>): void {
    this.#watchersByKey.delete(watcher.item.key);
    this.#watchers.release(watcher);
  }
}

/** The error for everything lost with a link: one for all, created when first needed. */
function lostLink(node: string, error: LeatError): () => LeatError {
  let lost: LeatError | undefined;
  return () =>
    lost ??= new LeatError("unavailable", `Lost the link to ${node}: ${error.message}`, {
      cause: error,
    });
}
