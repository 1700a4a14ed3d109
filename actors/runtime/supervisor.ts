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
  /** The pending restart; a later one replaces it. */
  restart: Restart<C> | undefined;
  stopping: boolean;
}

/** A restart under way: first the later members end, then a delay passes, then all start. */
interface Restart<C> {
  readonly members: readonly Child<C>[];
  timer: Timer | undefined;
}

const DEFAULTS = {
  strategy: "one_for_one",
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

  *cells(): Iterable<C> {
    for (const child of this.#children.values()) if (child.cell !== undefined) yield child.cell;
  }

  async stop(name: string): Promise<void> {
    const child = this.#children.get(name);
    if (child === undefined) return;
    child.stopping = true;
    if (child.restart?.members.every(({ stopping }) => stopping)) child.restart.timer?.cancel();
    await child.cell?.terminate(undefined);
    if (this.#children.get(name) === child) this.#children.delete(name);
  }

  async stopAll(): Promise<void> {
    this.#stopping = true;
    for (const name of [...this.#children.keys()].reverse()) await this.stop(name);
  }

  /** A child has ended: with an error, or without one (undefined) after its work. */
  async died(cell: C, error: LeatError | undefined): Promise<void> {
    const child = [...this.#children.values()].find((candidate) => candidate.cell === cell);
    if (child === undefined || child.stopping || this.#stopping) return;
    child.cell = undefined;
    const restart = child.spec.restart ?? "permanent";
    if (restart === "temporary" || (restart === "transient" && error === undefined)) {
      this.#children.delete(child.spec.name);
      return;
    }
    const delayMs = this.#nextDelayMs();
    if (delayMs === undefined) {
      this.#children.delete(child.spec.name);
      this.#owner.giveUp(this.#tooOften(child, error));
      return;
    }
    await this.#restart(cell, child, delayMs);
  }

  #tooOften({ spec: { name } }: Child<C>, error: LeatError | undefined): LeatError {
    const often =
      `"${name}" died ${this.#restartsMs.length} times within ${this.#rules.periodMs} ms`;
    const last = error === undefined ? "" : `, last of this: ${error.message}`;
    return new LeatError("internal", often + last, { cause: error });
  }

  /** Counts a restart; `undefined` when it is one too many. */
  #nextDelayMs(): number | undefined {
    const { intensity, periodMs, backoffMinMs, backoffMaxMs } = this.#rules;
    const now = this.#owner.world.nowMs();
    this.#restartsMs = this.#restartsMs.filter((atMs) => now - atMs < periodMs);
    this.#restartsMs.push(now);
    if (this.#restartsMs.length > intensity) return undefined;
    const doublings = Math.min(20, this.#restartsMs.length - 1);
    return Math.min(backoffMaxMs, backoffMinMs * 2 ** doublings);
  }

  async #restart(cell: C, child: Child<C>, delayMs: number): Promise<void> {
    const members = this.#rules.strategy === "one_for_one" ? [child] : this.#startedFrom(child);
    const restart: Restart<C> = { members, timer: undefined };
    for (const member of members) {
      member.restart?.timer?.cancel();
      member.restart = restart;
    }
    for (const later of members.slice(1).reverse()) {
      const running = later.cell;
      later.cell = undefined;
      await running?.terminate(undefined);
    }
    // While the later ones were ending, an earlier one may have died and taken this restart over.
    if (this.#stopping || child.restart !== restart) return;
    this.#owner.onRestart(cell, delayMs);
    restart.timer = this.#owner.world.timer(delayMs, () => this.#startAgain(restart));
  }

  #startAgain(restart: Restart<C>): void {
    for (const member of restart.members) {
      if (this.#stopping || member.stopping || member.restart !== restart) continue;
      member.restart = undefined;
      if (member.spec.restart === "temporary") this.#children.delete(member.spec.name);
      else member.cell = this.#owner.startCell(member.spec);
    }
  }

  #startedFrom(child: Child<C>): Child<C>[] {
    const all = [...this.#children.values()];
    return all.slice(all.indexOf(child));
  }
}
