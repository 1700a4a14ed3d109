/**
 * Names that come from outside.
 *
 * @module
 */
import { LeatError } from "../../core/error.ts";

/** Characters of a name beyond which it is refused: the dispatcher keeps names, and says them in errors. */
const NAME_LENGTH_MAX = 1_024;
/** Characters of a name that is too long that the error shows. */
const SHOWN_LENGTH = 40;

/** @throws {LeatError} `invalid_argument` for a name that is too long. */
export function checkName(what: string, name: string): void {
  if (name.length <= NAME_LENGTH_MAX) return;
  throw new LeatError(
    "invalid_argument",
    `${what} must have at most ${NAME_LENGTH_MAX} characters, got ${name.length}: ` +
      `"${name.slice(0, SHOWN_LENGTH)}…"`,
  );
}
