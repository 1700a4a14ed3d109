/**
 * Checks that no actor takes what was meant for one that lived at its path before: a reference with an
 * incarnation names one life.
 *
 * @module
 */
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { formatRef, keyOf } from "../../actors/runtime/ref.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import type { Findings } from "./checker.ts";

/** Compares what senders have said with who takes it, on all nodes of a run. */
export class FenceChecker {
  readonly #findings: Findings;
  /** The newest life at each path. */
  readonly #lives = new Map<string, string>();
  /** For which life each message was that is still to be taken. */
  readonly #meant = new Map<string, string>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** A node has started, and these are its actors. */
  watch(system: Pick<ActorSystem, "actors" | "inspect">): void {
    for (const { ref } of system.actors()) this.#lives.set(keyOf(ref), ref.incarnation);
    system.inspect((event) => this.#observe(event));
  }

  #observe(event: InspectionEvent): void {
    if (event.type === "start") this.#lives.set(keyOf(event.ref), event.ref.incarnation);
    if (event.type !== "send" && event.type !== "deliver") return;
    const { envelope } = event;
    if (envelope.kind !== "ask" && envelope.kind !== "tell") return;
    const message = `${envelope.source.incarnation} ${envelope.number} ${keyOf(envelope.target)}`;
    if (event.type === "deliver") this.#delivered(message, envelope);
    else if (envelope.target.incarnation !== undefined) {
      this.#meant.set(message, envelope.target.incarnation);
    }
  }

  #delivered(message: string, { source, target }: Envelope): void {
    const meant = this.#meant.get(message);
    this.#meant.delete(message);
    const incarnation = this.#lives.get(keyOf(target));
    if (meant === undefined || meant === incarnation) return;
    this.#findings.add(
      `${target.node}${target.path}#${incarnation} took what ${
        formatRef(source)
      } had sent to #${meant}`,
    );
  }
}
