/**
 * The children of one actor: started in order, restarted by rule, stopped in reverse order.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";
import type { ChildSpec, Supervision } from "./actor.ts";
import type { Timer, World } from "./world.ts";

/** The part of a living child that its supervisor handles. */
export interface SupervisedCell {
  terminate(error: LeatError | undefined): Promise<void>;
}

interface Child<C> {
  // deno-lint-ignore no-explicit-any -- children of one supervisor speak different protocols
  readonly spec: ChildSpec<any>;
  cell: C | undefined;
  restartTimer: Timer | undefined;
}

const DEFAULTS = {
  strategy: "one_for_one",
  intensity: 10,
  periodMs: 60_000,
  backoffMinMs: 10,
  backoffMaxMs: 5_000,
} as const;

/** What the supervisor needs from the actor it belongs to. */
export interface SupervisorOwner<C> {
  readonly world: World;
  // deno-lint-ignore no-explicit-any -- see above
  startCell(spec: ChildSpec<any>): C;
  onRestart(cell: C, delayMs: number): void;
  /** The children died too often. */
  giveUp(error: LeatError): void;
}

/** Keeps the children of one actor. */
export class Supervisor<C extends SupervisedCell> {
  readonly #owner: SupervisorOwner<C>;
  readonly #rules: Required<Supervision>;
  /** In the order of starting. */
  readonly #children = new Map<string, Child<C>>();
  #restartsMs: number[] = [];
  #stopping = false;

  constructor(owner: SupervisorOwner<C>, rules: Supervision = {}) {
    this.#owner = owner;
    this.#rules = { ...DEFAULTS, ...rules };
  }

  // deno-lint-ignore no-explicit-any -- see above
  start(spec: ChildSpec<any>): C {
    if (this.#stopping) {
      throw new LeatError("cancelled", `Cannot start "${spec.name}": its parent is stopping`);
    }
    if (spec.name === "" || spec.name.includes("/")) {
      throw new LeatError(
        "invalid_argument",
        `An actor's name must not be empty or hold "/", got "${spec.name}"`,
      );
    }
    if (this.#children.has(spec.name)) {
      throw new LeatError(
        "already_exists",
        `There is already a child named "${spec.name}"; stop it first or choose another name`,
      );
    }
    const child: Child<C> = { spec, cell: undefined, restartTimer: undefined };
    this.#children.set(spec.name, child);
    try {
      return child.cell = this.#owner.startCell(spec);
    } catch (error) {
      this.#children.delete(spec.name);
      throw error;
    }
  }

  get(name: string): { readonly cell: C | undefined } | undefined {
    return this.#children.get(name);
  }

  *cells(): Iterable<C> {
    for (const child of this.#children.values()) if (child.cell !== undefined) yield child.cell;
  }

  async stop(name: string): Promise<void> {
    const child = this.#children.get(name);
    if (child === undefined) return;
    child.restartTimer?.cancel();
    await child.cell?.terminate(undefined);
    if (this.#children.get(name) === child) this.#children.delete(name);
  }

  async stopAll(): Promise<void> {
    this.#stopping = true;
    for (const name of [...this.#children.keys()].reverse()) await this.stop(name);
  }

  /** A child has ended by itself: of an error, or (undefined) because it was done. */
  async died(cell: C, error: LeatError | undefined): Promise<void> {
    const child = [...this.#children.values()].find((candidate) => candidate.cell === cell);
    if (child === undefined || this.#stopping) return;
    child.cell = undefined;
    const restart = child.spec.restart ?? "permanent";
    if (restart === "temporary" || (restart === "transient" && error === undefined)) {
      this.#children.delete(child.spec.name);
      return;
    }
    const now = this.#owner.world.nowMs();
    this.#restartsMs = this.#restartsMs.filter((atMs) => now - atMs < this.#rules.periodMs);
    this.#restartsMs.push(now);
    if (this.#restartsMs.length > this.#rules.intensity) {
      this.#children.delete(child.spec.name);
      this.#owner.giveUp(
        new LeatError(
          "internal",
          `"${child.spec.name}" died ${this.#restartsMs.length} times within ${this.#rules.periodMs} ms`,
          { cause: error },
        ),
      );
      return;
    }
    const doublings = Math.min(20, this.#restartsMs.length - 1);
    const delayMs = Math.min(this.#rules.backoffMaxMs, this.#rules.backoffMinMs * 2 ** doublings);
    const group = this.#rules.strategy === "one_for_one" ? [child] : this.#startedFrom(child);
    for (const later of group.slice(1).reverse()) {
      const running = later.cell;
      later.cell = undefined;
      later.restartTimer?.cancel();
      await running?.terminate(undefined);
    }
    if (this.#stopping) return;
    this.#owner.onRestart(cell, delayMs);
    child.restartTimer = this.#owner.world.timer(delayMs, () => {
      for (const member of group) {
        if (this.#stopping || this.#children.get(member.spec.name) !== member) continue;
        member.restartTimer = undefined;
        member.cell = this.#owner.startCell(member.spec);
      }
    });
  }

  #startedFrom(child: Child<C>): Child<C>[] {
    const all = [...this.#children.values()];
    return all.slice(all.indexOf(child));
  }
}
