/** Applies `fn` to a value: synchronously, unless the value is a promise. */
export function then<T, R>(
  value: T | Promise<T>,
  fn: (value: T) => R | Promise<R>,
): R | Promise<R> {
  return value instanceof Promise ? value.then(fn) : fn(value);
}
