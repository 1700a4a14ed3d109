/**
 * What a node holds because of another node and for the life of an actor of its own, found by either:
 * when one of them is gone, that costs what hangs on it, however much else is held.
 *
 * @module
 */
import type { Cell } from "./cell.ts";
import { Groups, type Member } from "./groups.ts";

/** One of the items. */
export class Hold<T> {
  readonly item: T;
  ofNode!: Member<string, Hold<T>>;
  ofLife!: Member<Cell, Hold<T>>;

  constructor(item: T) {
    this.item = item;
  }
}

export class Holdings<T> {
  readonly #byNode = new Groups<string, Hold<T>>();
  readonly #byLife = new Groups<Cell, Hold<T>>();

  add(node: string, life: Cell, item: T): Hold<T> {
    const hold = new Hold(item);
    hold.ofNode = this.#byNode.add(node, hold);
    hold.ofLife = this.#byLife.add(life, hold);
    return hold;
  }

  /** False: it had been let go already. */
  release(hold: Hold<T>): boolean {
    this.#byLife.remove(hold.ofLife);
    return this.#byNode.remove(hold.ofNode);
  }

  /** What is held because of a node now, in the order in which it came. */
  ofNode(node: string): Hold<T>[] {
    return this.#byNode.of(node).map(({ item }) => item);
  }

  /** How much is held because of a node now. */
  countOfNode(node: string): number {
    return this.#byNode.countOf(node);
  }

  /** What is held for a life now, in the order in which it came. */
  ofLife(life: Cell): Hold<T>[] {
    return this.#byLife.of(life).map(({ item }) => item);
  }
}
