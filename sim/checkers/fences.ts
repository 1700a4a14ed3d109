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
  /**
   * For which life each message was that is still to be taken: by the sender's life, the name of the
   * receiver and the number between the two. (One text of the three would have to be made for each.)
   */
  readonly #meant = new Map<string, Map<string, Map<number, string>>>();

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
    if (event.type === "deliver") this.#delivered(envelope);
    else if (envelope.target.incarnation !== undefined) {
      this.#sent(envelope, envelope.target.incarnation);
    }
  }

  #sent({ source, target, number }: Envelope, meant: string): void {
    let bySender = this.#meant.get(source.incarnation);
    if (bySender === undefined) this.#meant.set(source.incarnation, bySender = new Map());
    const key = keyOf(target);
    const numbers = bySender.get(key);
    if (numbers === undefined) bySender.set(key, new Map([[number, meant]]));
    else numbers.set(number, meant);
  }

  #delivered({ source, target, number }: Envelope): void {
    const key = keyOf(target);
    const numbers = this.#meant.get(source.incarnation)?.get(key);
    const meant = numbers?.get(number);
    if (meant === undefined) return;
    numbers!.delete(number);
    const incarnation = this.#lives.get(key);
    if (meant === incarnation) return;
    this.#findings.add(
      `${target.node}${target.path}#${incarnation} took what ${
        formatRef(source)
      } had sent to #${meant}`,
    );
  }
}
