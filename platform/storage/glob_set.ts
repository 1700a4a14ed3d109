/** Sets of characters in glob patterns: `[a-z]`, `[!a-z]`. */

/** A set of characters: `[a-z]`, or all others: `[!a-z]`. */
export interface CharacterSet {
  readonly isNegated: boolean;
  readonly ranges: readonly (readonly [first: string, last: string])[];
}

/**
 * Parses the set whose bracket is at `open`. `end` is the position of its closing bracket. Returns
 * `undefined` if no bracket closes it before the next slash: then this bracket and all others up to
 * that slash are literal.
 */
export function parseSet(
  letters: ArrayLike<string>,
  open: number,
): { set: CharacterSet; end: number } | undefined {
  let at = open + 1;
  const isNegated = letters[at] === "!" || letters[at] === "^";
  if (isNegated) at++;
  const ranges: [string, string][] = [];
  const member = () => letters[at] === "\\" ? letters[at += 1] : letters[at];
  for (let first = true; at < letters.length; at++, first = false) {
    // A closing bracket directly after the opening one is a member.
    if (letters[at] === "]" && !first) return { set: { isNegated, ranges }, end: at };
    const from = member();
    if (from === undefined || from === "/") return undefined;
    let to: string | undefined = from;
    if (letters[at + 1] === "-" && letters[at + 2] !== undefined && letters[at + 2] !== "]") {
      at += 2;
      to = member();
      if (to === undefined || to === "/") return undefined;
    }
    ranges.push([from, to]);
  }
  return undefined;
}

/** Whether a character, one Unicode code point, is in the set. */
export function isMember({ isNegated, ranges }: CharacterSet, letter: string): boolean {
  const point = letter.codePointAt(0)!;
  const isInside = ranges.some(([first, last]) =>
    first.codePointAt(0)! <= point && point <= last.codePointAt(0)!
  );
  return isInside !== isNegated;
}
