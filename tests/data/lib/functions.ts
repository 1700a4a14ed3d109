/** Functions that tests name by module and export. */

export function double(x: number): number {
  return 2 * x;
}
