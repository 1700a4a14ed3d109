/** The children of one actor: started in order, restarted by rule, stopped in reverse order. */
import { LeatError } from "../../core/error.ts";
import type { ChildSpec, Supervision } from "./actor.ts";
import type { Timer, World } from "./world.ts";

/** The part of a living child that its supervisor handles. */
interface SupervisedCell {
  terminate(error: LeatError | undefined): Promise<void>;
}

interface Child<C> {
  // deno-lint-ignore no-explicit-any -- children of one supervisor speak different protocols
  readonly spec: ChildSpec<any>;
  cell: C | undefined;
  /** The pending restart. */
  restart: Timer | undefined;
  stopping: boolean;
}

const DEFAULTS = {
  intensity: 10,
  periodMs: 60_000,
  backoffMinMs: 10,
  backoffMaxMs: 5_000,
} as const;

interface SupervisorOwner<C> {
  readonly world: World;
  // deno-lint-ignore no-explicit-any -- see above
  startCell(spec: ChildSpec<any>): C;
  onRestart(cell: C, delayMs: number): void;
  /** The children died too often. */
  giveUp(error: LeatError): void;
}

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
    const child: Child<C> = {
      spec,
      cell: undefined,
      restart: undefined,
      stopping: false,
    };
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

  async stop(name: string): Promise<void> {
    const child = this.#children.get(name);
    if (child === undefined) return;
    child.stopping = true;
    child.restart?.cancel();
    await child.cell?.terminate(undefined);
    if (this.#children.get(name) === child) this.#children.delete(name);
  }

  async stopAll(): Promise<void> {
    this.#stopping = true;
    for (const name of [...this.#children.keys()].reverse()) await this.stop(name);
  }

  /** A child has died. */
  died(cell: C, error: LeatError): void {
    const child = [...this.#children.values()].find((candidate) => candidate.cell === cell);
    if (child === undefined || child.stopping || this.#stopping) return;
    child.cell = undefined;
    if (child.spec.restart === "temporary") {
      this.#children.delete(child.spec.name);
      return;
    }
    const delayMs = this.#nextDelayMs();
    if (delayMs === undefined) {
      this.#children.delete(child.spec.name);
      this.#owner.giveUp(this.#tooOften(child, error));
      return;
    }
    this.#restart(cell, child, delayMs);
  }

  #tooOften({ spec: { name } }: Child<C>, error: LeatError): LeatError {
    const often =
      `"${name}" died ${this.#restartsMs.length} times within ${this.#rules.periodMs} ms`;
    return new LeatError("internal", `${often}. Last error: ${error.message}`, { cause: error });
  }

  /** Counts a restart. Returns undefined if there are more than `intensity`. */
  #nextDelayMs(): number | undefined {
    const { intensity, periodMs, backoffMinMs, backoffMaxMs } = this.#rules;
    const now = this.#owner.world.nowMs();
    this.#restartsMs = this.#restartsMs.filter((atMs) => now - atMs < periodMs);
    this.#restartsMs.push(now);
    if (this.#restartsMs.length > intensity) return undefined;
    const doublings = Math.min(20, this.#restartsMs.length - 1);
    return Math.min(backoffMaxMs, backoffMinMs * 2 ** doublings);
  }

  #restart(cell: C, child: Child<C>, delayMs: number): void {
    this.#owner.onRestart(cell, delayMs);
    child.restart = this.#owner.world.timer(delayMs, () => {
      if (this.#stopping || child.stopping) return;
      child.restart = undefined;
      child.cell = this.#owner.startCell(child.spec);
    });
  }
}
