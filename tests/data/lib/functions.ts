/** Functions that tests refer to by module and export. */

export function double(x: number): number {
  return 2 * x;
}

export function twoIsText(x: number): number | string {
  return x === 2 ? "two" : x;
}

/** How often `count` was called. */
export const counted = { calls: 0 };

export function count(x: number): number {
  counted.calls++;
  return x;
}
