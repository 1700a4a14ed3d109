/**
 * Elements that operators hold, and how they are saved: by token where the input gives tokens, by
 * content where it does not.
 */
import type { ElementIterator, Token } from "../iterator.ts";
import { wholeState } from "../checkpoint/whole_state.ts";

/** A row of elements of one input, each with its token if the input gives any. */
export interface HeldElements {
  readonly elements: unknown[];
  /** As long as `elements`, or empty. */
  readonly tokens: Token[];
}

/** The element that `input` has just given, as it is held. */
export function heldFrom(input: ElementIterator, element: unknown): HeldElements {
  const token = input.token();
  return { elements: [element], tokens: token === undefined ? [] : [token] };
}

/** What is saved of elements that are held. */
export function saveHeld({ elements, tokens }: HeldElements): unknown {
  return tokens.length === elements.length ? { tokens: [...tokens] } : { elements: [...elements] };
}

/** The elements that `saveHeld` was told of. `input` is the one they came from. */
export async function restoreHeld(state: unknown, input: ElementIterator): Promise<HeldElements> {
  const saved = wholeState(state) as
    | { readonly tokens: Token[] }
    | { readonly elements: unknown[] };
  if (!("tokens" in saved)) return { elements: saved.elements, tokens: [] };
  const elements: unknown[] = [];
  for (const token of saved.tokens) elements.push(await input.again(token));
  return { elements, tokens: saved.tokens };
}
