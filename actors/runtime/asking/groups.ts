/** Items in groups, as linked lists: an item is removed without a search. */
import type { Cell } from "../cell.ts";

/** Items with a common key, in the order in which they were added. */
interface Group<K, T> {
  readonly key: K;
  first: Member<K, T> | undefined;
  last: Member<K, T> | undefined;
  count: number;
}

/** An added item, linked to its neighbours, to be passed to `remove`. */
export interface Member<K, T> {
  readonly item: T;
  /** Undefined after removal. */
  group: Group<K, T> | undefined;
  before: Member<K, T> | undefined;
  after: Member<K, T> | undefined;
}

/** A group exists while it has members. */
export class Groups<K, T> {
  readonly #groups = new Map<K, Group<K, T>>();

  get size(): number {
    return this.#groups.size;
  }

  keys(): MapIterator<K> {
    return this.#groups.keys();
  }

  add(key: K, item: T): Member<K, T> {
    let group = this.#groups.get(key);
    if (group === undefined) {
      this.#groups.set(key, group = { key, first: undefined, last: undefined, count: 0 });
    }
    const { last } = group;
    const member: Member<K, T> = { item, group, before: last, after: undefined };
    if (last === undefined) group.first = member;
    else last.after = member;
    group.last = member;
    group.count++;
    return member;
  }

  /** Removes a member. Returns false if it was removed before. */
  remove(member: Member<K, T>): boolean {
    const { group, before, after } = member;
    if (group === undefined) return false;
    member.group = undefined;
    group.count--;
    if (before === undefined) group.first = after;
    else before.after = after;
    if (after === undefined) group.last = before;
    else after.before = before;
    if (group.first === undefined) this.#groups.delete(group.key);
    return true;
  }

  countOf(key: K): number {
    return this.#groups.get(key)?.count ?? 0;
  }

  /** A copy of a group's members, so that items may be added and removed during iteration. */
  of(key: K): Member<K, T>[] {
    const members: Member<K, T>[] = [];
    let next = this.#groups.get(key)?.first;
    for (; next !== undefined; next = next.after) members.push(next);
    return members;
  }

  clear(): void {
    this.#groups.clear();
  }
}

export class Hold<T> {
  readonly item: T;
  ofNode!: Member<string, Hold<T>>;
  ofActor!: Member<Cell, Hold<T>>;

  constructor(item: T) {
    this.item = item;
  }
}

/** Items held for a node and an actor. When one of the two ends, all its items are released together. */
export class Holdings<T> {
  readonly #byNode = new Groups<string, Hold<T>>();
  readonly #byActor = new Groups<Cell, Hold<T>>();

  add(node: string, actor: Cell, item: T): Hold<T> {
    const hold = new Hold(item);
    hold.ofNode = this.#byNode.add(node, hold);
    hold.ofActor = this.#byActor.add(actor, hold);
    return hold;
  }

  /** Returns false if it was released before. */
  release(hold: Hold<T>): boolean {
    this.#byActor.remove(hold.ofActor);
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
  ofActor(actor: Cell): Hold<T>[] {
    return this.#byActor.of(actor).map(({ item }) => item);
  }
}
