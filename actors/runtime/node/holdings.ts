/** Items held for a node and an actor, indexed by both, to release either's quickly. */
import type { Cell } from "../cell.ts";
import { Groups, type Member } from "../asking/groups.ts";

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

  /** False: it was released before. */
  release(hold: Hold<T>): boolean {
    this.#byLife.remove(hold.ofLife);
    return this.#byNode.remove(hold.ofNode);
  }

  /** The items of a node, in the order in which they were added. */
  ofNode(node: string): Hold<T>[] {
    return this.#byNode.of(node).map(({ item }) => item);
  }

  countOfNode(node: string): number {
    return this.#byNode.countOf(node);
  }

  /** The items of an incarnation, in the order in which they were added. */
  ofLife(life: Cell): Hold<T>[] {
    return this.#byLife.of(life).map(({ item }) => item);
  }
}
