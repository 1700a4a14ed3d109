/** Counts what the dispatcher looks at, for tests of how its work grows. */
import { DispatcherState } from "../../../actors/dispatcher/state/state.ts";

/** Counts what is asked of the dispatcher's state, and what is come by in its collections. */
export class Looks implements Disposable {
  count = 0;
  readonly #before = Object.getOwnPropertyDescriptors(DispatcherState.prototype);

  constructor() {
    // deno-lint-ignore no-this-alias -- the accessors have a `this` of their own
    const looks = this;
    for (const [name, was] of Object.entries(this.#before)) {
      const { get, value } = was;
      if (name === "constructor" || name === "apply" || name === "snapshot") continue;
      const ask = get ?? value as (...args: unknown[]) => unknown;
      const counted = function (this: DispatcherState, ...args: unknown[]) {
        looks.count++;
        return looks.#counted(ask.apply(this, args));
      };
      const now = get === undefined ? { ...was, value: counted } : { ...was, get: counted };
      Object.defineProperty(DispatcherState.prototype, name, now);
    }
  }

  [Symbol.dispose](): void {
    Object.defineProperties(DispatcherState.prototype, this.#before);
  }

  #counted(result: unknown): unknown {
    if (!(result instanceof Map || result instanceof Set)) return result;
    return new Proxy(result, {
      get: (target, name) => {
        const found: unknown = Reflect.get(target, name, target);
        if (typeof found !== "function") return found;
        const isWalk = name === Symbol.iterator || name === "values" || name === "keys" ||
          name === "entries";
        return isWalk ? () => this.#walk(found.call(target)) : found.bind(target);
      },
    });
  }

  *#walk(items: Iterable<unknown>): Generator<unknown> {
    for (const item of items) {
      this.count++;
      yield item;
    }
  }
}
