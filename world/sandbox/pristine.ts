/**
 * Built-ins as they were before any user function ran: what decides something on a confined thread
 * uses these, because a function may have replaced those that everybody finds.
 *
 * @module
 */

/** `method.call(self, …)` that later changes of any prototype do not reach. */
export function uncurried<Self, A extends unknown[], R>(
  method: (this: Self, ...args: A) => R,
): (self: Self, ...args: A) => R {
  return Function.prototype.call.bind(method) as (self: Self, ...args: A) => R;
}

/** See `String.prototype.startsWith`. */
export const startsWith: (text: string, start: string) => boolean = uncurried(
  String.prototype.startsWith,
);
/** See `String.prototype.endsWith`. */
export const endsWith: (text: string, end: string) => boolean = uncurried(
  String.prototype.endsWith,
);
/** See `String.prototype.indexOf`. */
export const indexOf: (text: string, part: string) => number = uncurried(
  String.prototype.indexOf,
);
/** See `String.prototype.slice`. */
export const slice: (text: string, start: number, end: number) => string = uncurried(
  String.prototype.slice,
);
/** See `Set.prototype.has`. */
export const setHas: (set: ReadonlySet<string>, value: string) => boolean = uncurried(
  Set.prototype.has,
);
/** See `Map.prototype.get`. */
export const mapGet: <V>(map: ReadonlyMap<string, V>, key: string) => V | undefined = uncurried(
  Map.prototype.get,
) as never;
/** See `Map.prototype.set`. */
export const mapSet: <V>(map: Map<string, V>, key: string, value: V) => void = uncurried(
  Map.prototype.set,
) as never;
/** The `href` of a URL. */
export const href: (url: URL) => string = uncurried(
  Object.getOwnPropertyDescriptor(URL.prototype, "href")!.get as (this: URL) => string,
);
/** Whether a text starts with one of some beginnings. */
export function startsWithAny(text: string, starts: readonly string[]): boolean {
  for (let i = 0; i < starts.length; i++) if (startsWith(text, starts[i]!)) return true;
  return false;
}
/** See `Object.hasOwn`. */
export const { hasOwn } = Object;

/** Makes objects and their prototypes unchangeable, those of all objects apart. */
export function freezeKinds(...objects: object[]): void {
  for (const first of objects) {
    let object: object | null = first;
    while (object !== null && object !== Object.prototype) {
      Object.freeze(object);
      object = Object.getPrototypeOf(object);
    }
  }
}
