/**
 * Checks that no actor dies of an error. Its supervisor would restart it, and the run would go on as
 * after a crash. Only a failure of a node's disk may end the actors there.
 */
import type { ActorSystem } from "../../actors/runtime/system.ts";
import { formatRef } from "../../actors/runtime/ref.ts";
import type { Findings } from "./checker.ts";

interface Node {
  readonly system: Pick<ActorSystem, "inspect">;
  readonly disk: { readonly hasFailed: boolean };
}

/** Watches why actors end, on all nodes of a run. */
export class BugChecker {
  readonly #findings: Findings;

  constructor(findings: Findings) {
    this.#findings = findings;
  }

  /** Watches a node that has started. */
  watch({ system, disk }: Node): void {
    system.inspect((event) => {
      if (event.type !== "stop" || event.error === undefined) return;
      const { code, message } = event.error;
      // An error of the disk is a LeatError. What is not becomes `internal`.
      if (disk.hasFailed && code !== "internal") return;
      this.#findings.add(`${formatRef(event.ref)} died: ${code}: ${message}`);
    });
  }
}
