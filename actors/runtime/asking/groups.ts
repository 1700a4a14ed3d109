/** Items in groups. Removing one changes a few fields; a set per group would hash every item. */

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

  /** How many groups there are. */
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

  /** Removes a member. False: it was removed before. */
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

  /** How many members a group has. */
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
