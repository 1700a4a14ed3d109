/** Outcomes of `next()` that are held before they are given, and how they are saved. */
import { LeatError, type WireError } from "../../core/error.ts";
import type { ElementIterator, Token } from "../iterator.ts";
import { wholeState } from "../checkpoint/whole_state.ts";

/** An element, or the error of one that failed. */
export interface Outcome {
  readonly failed: boolean;
  readonly value: unknown;
}

export type SavedOutcome =
  | { readonly element: unknown }
  | { readonly token: Token }
  | { readonly error: WireError };

/** An element is saved as its token, if it has one. */
export function saveOutcome({ failed, value }: Outcome, token?: Token): SavedOutcome {
  if (failed) return { error: LeatError.from(value).toWire() };
  return token === undefined ? { element: value } : { token };
}

/** The saved error. Fails if the code or the message is missing. */
export function restoreError(saved: WireError): LeatError {
  const { code, message } = wholeState(saved);
  return LeatError.fromWire({ ...saved, code, message });
}

/** The saved outcome. `input`: the iterator that gave the token, if there is one. */
export async function restoreOutcome(
  saved: SavedOutcome,
  input: ElementIterator | undefined,
): Promise<Outcome> {
  if ("error" in saved) return { failed: true, value: restoreError(saved.error) };
  const value = "token" in saved ? await input!.again(saved.token) : wholeState(saved).element;
  return { failed: false, value };
}
