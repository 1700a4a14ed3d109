/** Functions that wait for a file: tests decide when by creating it. */

/** Returns the number; from `from` on only once a file `gate` exists. */
export async function held(
  x: number,
  { from, gate }: { readonly from: number; readonly gate: string },
): Promise<number> {
  while (x >= from && !isThere(gate)) await new Promise((resolve) => setTimeout(resolve, 2));
  return x;
}

/** Returns the number; from `from` on it fails as long as there is no file `gate`. */
export function barred(
  x: number,
  { from, gate }: { readonly from: number; readonly gate: string },
): number {
  if (x >= from && !isThere(gate)) throw new Error("the gate is shut");
  return x;
}

function isThere(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
