/** Functions that do not go on before a file is there: tests decide when by making it. */

/** The number; one from `from` on not before there is a file `gate`. */
export async function held(
  x: number,
  { from, gate }: { readonly from: number; readonly gate: string },
): Promise<number> {
  while (x >= from && !isThere(gate)) await new Promise((resolve) => setTimeout(resolve, 2));
  return x;
}

/** The number; one from `from` on fails as long as there is no file `gate`. */
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
