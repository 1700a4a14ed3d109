/**
 * Wrong windows and wrong repeats: what the cache is made of with one thing changed, for as long as a
 * test runs.
 */
import { SlidingWindow } from "../../actors/cache/sliding_window.ts";
import { Repeats } from "../../actors/elements/repeats.ts";

/** Each changes a class for everybody; disposing of the answer undoes it. */
export const MUTANTS: Readonly<Record<string, () => Disposable>> = {
  "a window that evicts without moving pointers": () => {
    const { push, read } = SlidingWindow.prototype;
    const readers = new PerInstance<SlidingWindow<unknown>, Set<string>>(() => new Set());
    return changed(SlidingWindow.prototype as SlidingWindow<unknown>, {
      read(reader) {
        readers.of(this).add(reader);
        return read.call(this, reader);
      },
      // As if pointers were counted from the back of the window, and stayed when that moves on.
      push(value, bytes) {
        const before = this.length;
        const behind = [...readers.of(this)].filter((reader) => !this.atFront(reader));
        push.call(this, value, bytes);
        for (let evicted = before + 1 - this.length; evicted > 0; evicted--) {
          for (const reader of behind) read.call(this, reader);
        }
      },
    });
  },

  "a window that evicts nothing": () => {
    const { push, resize } = SlidingWindow.prototype;
    return changed(SlidingWindow.prototype as SlidingWindow<unknown>, {
      push(value, bytes) {
        resize.call(this, Infinity);
        push.call(this, value, bytes);
      },
    });
  },

  "repeats that give an element twice after a request was repeated": () => {
    const { answer } = Repeats.prototype;
    type Given = { newest: number; repeated: boolean; last?: ReturnType<typeof answer> };
    const clients = new PerInstance<Repeats, Map<number, Given>>(() => new Map());
    return changed(Repeats.prototype, {
      answer(request, produce) {
        const known = clients.of(this);
        const given = known.get(request.clientId) ?? { newest: 0, repeated: false };
        known.set(request.clientId, given);
        if (request.sequence <= given.newest) {
          given.repeated = true;
          return answer.call(this, request, produce);
        }
        given.newest = request.sequence;
        const { last, repeated } = given;
        given.repeated = false;
        if (repeated && last !== undefined) return answer.call(this, request, () => last);
        return answer.call(this, request, () => given.last = produce());
      },
    });
  },
};

/** Something more that each instance of a class remembers. */
class PerInstance<K extends object, V> {
  readonly #values = new WeakMap<K, V>();
  readonly #make: () => V;

  constructor(make: () => V) {
    this.#make = make;
  }

  of(instance: K): V {
    if (!this.#values.has(instance)) this.#values.set(instance, this.#make());
    return this.#values.get(instance)!;
  }
}

function changed<T extends object>(prototype: T, methods: Partial<T> & ThisType<T>): Disposable {
  const before = Object.keys(methods).map((name) =>
    [name, Object.getOwnPropertyDescriptor(prototype, name)!] as const
  );
  Object.assign(prototype, methods);
  return {
    [Symbol.dispose]() {
      for (const [name, method] of before) Object.defineProperty(prototype, name, method);
    },
  };
}
