/**
 * Checks that no actor receives a message meant for an earlier actor at its path. A reference with an
 * incarnation addresses one life of an actor.
 */
import type { InspectionEvent } from "../../actors/runtime/inspection.ts";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import { formatRef, keyOf } from "../../actors/runtime/ref.ts";
import type { ActorSystem } from "../../actors/runtime/system.ts";
import type { Findings } from "./checker.ts";

/** Compares the intended receiver of each message with the actual one, on all nodes of a run. */
export class FenceChecker {
  readonly #findings: Findings;
  /** The incarnation of the newest actor at each path. */
  readonly #lives = new Map<string, string>();
  /**
   * The intended incarnation of each message in flight, by the sender's incarnation, the receiver's name,
   * and the message's number between the two. (One joined key would cost a string per message.)
   */
  readonly #intended = new Map<string, Map<string, Map<number, string>>>();

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Watches a node that has started. */
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

  #sent({ source, target, number }: Envelope, intended: string): void {
    let bySender = this.#intended.get(source.incarnation);
    if (bySender === undefined) this.#intended.set(source.incarnation, bySender = new Map());
    const key = keyOf(target);
    const numbers = bySender.get(key);
    if (numbers === undefined) bySender.set(key, new Map([[number, intended]]));
    else numbers.set(number, intended);
  }

  #delivered({ source, target, number }: Envelope): void {
    const key = keyOf(target);
    const numbers = this.#intended.get(source.incarnation)?.get(key);
    const intended = numbers?.get(number);
    if (intended === undefined) return;
    numbers!.delete(number);
    const incarnation = this.#lives.get(key);
    if (intended === incarnation) return;
    this.#findings.add(
      `${target.node}${target.path}#${incarnation} took what ${
        formatRef(source)
      } had sent to #${intended}`,
    );
  }
}
