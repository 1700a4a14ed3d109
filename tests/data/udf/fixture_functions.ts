/** User functions for the tests of module references. */

export function double(x: number): number {
  return x * 2;
}

export default (x: number): number => x * x;

export const ONE = 1;
