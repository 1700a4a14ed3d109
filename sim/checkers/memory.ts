/**
 * Checks, while a run goes on, that no node holds ever more: what waits in mailboxes, what was asked and
 * not answered, by others and by its own actors, the answers that are kept for whoever asks again, and
 * what has arrived at a client and was not taken, stay within what a cluster so small has a use for. At
 * its end, that what a dispatcher knows is small.
 *
 * @module
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import type { Findings } from "./checker.ts";

/** Bounds per node: far more than its few peers have reason to send or ask at a time. */
export const WAITING_MAX = 500;
export const OPEN_ASKS_MAX = 500;
export const KEPT_ANSWERS_MAX = 1_000;
export const BEING_ANSWERED_MAX = 300;
/** So many may be kept longer than it takes to find out that who has asked for them is gone. */
export const KEPT_ANSWERS_LASTING_MAX = 200;
export const KEPT_LONG_MS = 10_000;
/** Where nothing happens at all for longer, it counts as so long: who is not asked forgets nothing. */
export const SILENCE_MS = 1_000;
/** Of one client: more than the few elements that it may have asked for. */
export const FEED_BYTES_MAX = 65_536;
/** Of a dispatcher's state, as a snapshot has it. */
export const STATE_BYTES_MAX = 65_536;
/** It looks once in so many calls. */
export const EVERY = 64;

interface Node {
  readonly name: string;
  readonly isUp: boolean;
  readonly system: Pick<ActorSystem, "held" | "inspect">;
}

/** See the module. */
export class MemoryChecker {
  readonly #findings: Findings;
  readonly #found = new Set<string>();
  /** Since when nodes have kept more answers than may be kept for long, in virtual ms without silence. */
  readonly #manyKeptMs = new Map<string, number>();
  #calls = 0;
  #calledMs = 0;
  /** What of the time was silence beyond `SILENCE_MS`. */
  #silentMs = 0;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** A node with a client has started: what that says of itself is heard. */
  watch({ name, system }: Node): void {
    system.inspect((event: InspectionEvent) => {
      if (event.type !== "send" || event.envelope.kind !== "ask") return;
      const { method, body } = event.envelope;
      if (method !== "clientHeartbeat") return;
      const { bufferedBytes = 0 } = (body as HeartbeatRequest).figures ?? {};
      this.#expect(name, "bytes wait for a training loop", bufferedBytes, FEED_BYTES_MAX);
    });
  }

  /** Something has happened, at a virtual time in ms. */
  look(nodes: () => readonly Node[], nowMs: number): void {
    this.#silentMs += Math.max(0, nowMs - this.#calledMs - SILENCE_MS);
    this.#calledMs = nowMs;
    if (this.#calls++ % EVERY !== 0) return;
    const busyMs = nowMs - this.#silentMs;
    for (const node of nodes()) {
      if (!node.isUp) {
        this.#manyKeptMs.delete(node.name);
        continue;
      }
      const { name } = node;
      const { waiting, openAsks, keptAnswers, beingAnswered } = node.system.held;
      this.#expect(name, "messages wait in mailboxes", waiting, WAITING_MAX);
      this.#expect(name, "asks are open", openAsks, OPEN_ASKS_MAX);
      this.#expect(name, "answers are kept", keptAnswers, KEPT_ANSWERS_MAX);
      this.#expect(name, "asks are being answered", beingAnswered, BEING_ANSWERED_MAX);
      this.#expectFew(name, keptAnswers, busyMs);
    }
  }

  /** A job that is begun again and again leaves many, but not for long. */
  #expectFew(name: string, keptAnswers: number, busyMs: number): void {
    if (keptAnswers <= KEPT_ANSWERS_LASTING_MAX) {
      this.#manyKeptMs.delete(name);
      return;
    }
    const sinceMs = this.#manyKeptMs.get(name) ?? busyMs;
    this.#manyKeptMs.set(name, sinceMs);
    if (busyMs - sinceMs < KEPT_LONG_MS) return;
    const what = `answers are kept for ${KEPT_LONG_MS} ms`;
    this.#expect(name, what, keptAnswers, KEPT_ANSWERS_LASTING_MAX);
  }

  /** The run is over, and a snapshot of what the dispatcher of that node knows has so many bytes. */
  ended(name: string, stateBytes: number): void {
    this.#expect(name, "bytes are in the state", stateBytes, STATE_BYTES_MAX);
  }

  #expect(name: string, what: string, count: number, most: number): void {
    if (count <= most || this.#found.has(`${name} ${what}`)) return;
    this.#found.add(`${name} ${what}`);
    this.#findings.add(`${count} ${what} of ${name}, of ${most} at most`);
  }
}

type HeartbeatRequest = RequestOf<DispatcherProtocol, "clientHeartbeat">;
