/**
 * Checks, while a run goes on, that no node holds ever more: what waits in mailboxes and what was asked
 * and not answered stays within what a cluster so small has a use for.
 *
 * @module
 */
import type { ActorSystem } from "../../actors/runtime/system.ts";
import type { Findings } from "./checker.ts";

/** Bounds per node: far more than its few peers have reason to send or ask at a time. */
export const WAITING_MAX = 500;
export const OPEN_ASKS_MAX = 500;
/** It looks once in so many calls. */
export const EVERY = 64;

interface Node {
  readonly name: string;
  readonly isUp: boolean;
  readonly system: ActorSystem;
}

/** See the module. */
export class MemoryChecker {
  readonly #findings: Findings;
  readonly #found = new Set<string>();
  #calls = 0;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Something has happened. */
  look(nodes: () => readonly Node[]): void {
    if (this.#calls++ % EVERY !== 0) return;
    for (const node of nodes()) {
      if (!node.isUp) continue;
      const { waiting, openAsks } = node.system.held;
      this.#expect(node, "messages wait in mailboxes", waiting, WAITING_MAX);
      this.#expect(node, "asks are open", openAsks, OPEN_ASKS_MAX);
    }
  }

  #expect({ name }: Node, what: string, count: number, most: number): void {
    if (count <= most || this.#found.has(`${name} ${what}`)) return;
    this.#found.add(`${name} ${what}`);
    this.#findings.add(`${count} ${what} of ${name}, of ${most} at most`);
  }
}
