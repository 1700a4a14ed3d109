/** Checks that workers answer at their advertised addresses, which clients will dial. */
import { LeatError } from "../../../core/error.ts";
import type { ActorContext } from "../../runtime/actor.ts";
import type { FencedRef } from "../../runtime/ref.ts";
import type { WorkerProtocol } from "../../worker/protocol.ts";

/** An address that did not answer is dialed again at the first heartbeat after this time, in ms. */
const RETRY_MS = 10_000;

/** Dials a worker's address as a client would. Rejects with the reason if it does not answer. */
export type DialWorker = (worker: FencedRef<WorkerProtocol>) => Promise<void>;

interface Check {
  readonly incarnation: string;
  /** When to dial again. Infinity while dialing and once the address has answered. */
  dueMs: number;
  unreachable: string | undefined;
}

/** Dials each incarnation of a worker once, and again while it does not answer. */
export class ReachabilityProbe {
  readonly #context: ActorContext;
  readonly #dial: DialWorker | undefined;
  readonly #checks = new Map<string, Check>();

  /** @param dial Left out: nothing is checked. */
  constructor(context: ActorContext, dial: DialWorker | undefined) {
    this.#context = context;
    this.#dial = dial;
  }

  /** Dials the worker if it is new, or if a retry is due. */
  check(name: string, worker: FencedRef<WorkerProtocol>): void {
    if (this.#dial === undefined) return;
    const { world } = this.#context;
    let check = this.#checks.get(name);
    if (check === undefined || check.incarnation !== worker.incarnation) {
      world.log("info", `Worker "${name}" at ${worker.node} has registered`);
      check = { incarnation: worker.incarnation, dueMs: world.nowMs(), unreachable: undefined };
      this.#checks.set(name, check);
    }
    if (world.nowMs() < check.dueMs) return;
    check.dueMs = Infinity;
    this.#run(name, worker, check, this.#dial);
  }

  forget(name: string): void {
    if (this.#checks.delete(name)) this.#context.world.log("info", `Worker "${name}" is gone`);
  }

  /** Why the worker's address does not answer; undefined if it does. */
  unreachable(name: string): string | undefined {
    return this.#checks.get(name)?.unreachable;
  }

  #run(name: string, worker: FencedRef<WorkerProtocol>, check: Check, dial: DialWorker): void {
    const { world } = this.#context;
    this.#context.run(async () => {
      try {
        await dial(worker);
        if (check.unreachable !== undefined) {
          world.log("info", `Worker "${name}" answers at ${worker.node} now`);
        }
        check.unreachable = undefined;
      } catch (error) {
        const isFirstFailure = check.unreachable === undefined;
        check.unreachable = LeatError.from(error).message;
        check.dueMs = world.nowMs() + RETRY_MS;
        if (!isFirstFailure || this.#checks.get(name) !== check) return;
        world.log(
          "warn",
          `Worker "${name}" advertises ${worker.node}, but the dispatcher cannot reach it there ` +
            `(${check.unreachable}), and clients probably cannot either: start it with an address ` +
            "that others can reach (--advertise HOST[:PORT]), and open its port in the firewall",
        );
      }
    });
  }
}
