/**
 * Checks during a run that no node's memory grows without bound. Messages in mailboxes, unanswered asks
 * in both directions, answers kept for repeated requests, and elements buffered at clients must stay
 * within the needs of a small cluster. At the end, checks the size of the dispatcher's state.
 */
import type { DispatcherProtocol } from "../../actors/dispatcher/protocol.ts";
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import type { Findings } from "./checker.ts";

/** Maximum messages in mailboxes per node, far more than its few peers have reason to send. */
export const WAITING_MAX = 500;
/**
 * Maximum open asks per node. An ordered client asks each task for up to 16 elements, and again while it
 * waits for late answers.
 */
export const OPEN_ASKS_MAX = 2_000;
export const KEPT_ANSWERS_MAX = 1_000;
export const BEING_ANSWERED_MAX = 300;
/**
 * Maximum answers kept for longer than `KEPT_LONG_MS`. More may be kept only until their asker is known
 * to be gone.
 */
export const KEPT_ANSWERS_LASTING_MAX = 200;
export const KEPT_LONG_MS = 10_000;
/** A longer time without any event counts as this much, because an idle node cannot forget anything. */
export const SILENCE_MS = 1_000;
/** Maximum bytes buffered per client, more than the few elements that it may have requested. */
export const FEED_BYTES_MAX = 65_536;
/** Maximum size of a snapshot of the dispatcher's state. */
export const STATE_BYTES_MAX = 65_536;
/** The checker looks at the nodes once in this many calls. */
export const EVERY = 64;

interface Node {
  readonly name: string;
  readonly isUp: boolean;
  readonly system: Pick<ActorSystem, "held" | "inspect">;
}

/** Watches all nodes of a run. */
export class MemoryChecker {
  readonly #findings: Findings;
  readonly #found = new Set<string>();
  /**
   * Since when a node has kept more than `KEPT_ANSWERS_LASTING_MAX` answers, in virtual ms without idle
   * time.
   */
  readonly #manyKeptMs = new Map<string, number>();
  #calls = 0;
  #calledMs = 0;
  /** Idle time beyond `SILENCE_MS`. */
  #silentMs = 0;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Watches a started node with a client, by the client's heartbeats. */
  watch({ name, system }: Node): void {
    system.inspect((event: InspectionEvent) => {
      if (event.type !== "send" || event.envelope.kind !== "ask") return;
      const { method, body } = event.envelope;
      if (method !== "clientHeartbeat") return;
      const { bufferedBytes = 0 } = (body as HeartbeatRequest).figures ?? {};
      this.#expect(name, "bytes wait for a training loop", bufferedBytes, FEED_BYTES_MAX);
    });
  }

  /** Checks all nodes. The caller calls it at every event, with the virtual time in ms. */
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

  /** Checks that many answers are not kept for long. Repeated restarts of a job leave many at first. */
  #expectFew(name: string, keptAnswers: number, busyMs: number): void {
    if (keptAnswers <= KEPT_ANSWERS_LASTING_MAX) {
      this.#manyKeptMs.delete(name);
      return;
    }
    const sinceMs = this.#manyKeptMs.getOrInsert(name, busyMs);
    if (busyMs - sinceMs < KEPT_LONG_MS) return;
    const what = `answers are kept for ${KEPT_LONG_MS} ms`;
    this.#expect(name, what, keptAnswers, KEPT_ANSWERS_LASTING_MAX);
  }

  /** Checks at the end of the run the size of a snapshot of that node's dispatcher. */
  ended(name: string, stateBytes: number): void {
    this.#expect(name, "bytes are in the state", stateBytes, STATE_BYTES_MAX);
  }

  #expect(name: string, what: string, count: number, countMax: number): void {
    if (count <= countMax || this.#found.has(`${name} ${what}`)) return;
    this.#found.add(`${name} ${what}`);
    this.#findings.add(`${count} ${what} of ${name}, of ${countMax} at most`);
  }
}

type HeartbeatRequest = RequestOf<DispatcherProtocol, "clientHeartbeat">;
