/**
 * Elements that operators hold. They are saved by token where the input gives tokens, and otherwise
 * by content.
 */
import { copyTree } from "../../core/tree.ts";
import type { ElementIterator, Token } from "../iterator.ts";
import { wholeState } from "../checkpoint/whole_state.ts";
import { keepMemory } from "./released.ts";

/** Elements of one input, each with its token if the input gives any. */
export interface HeldElements {
  readonly elements: unknown[];
  /** As long as `elements`, or empty. */
  readonly tokens: Token[];
}

/** Holds the element that `input` has just given. */
export function heldFrom(input: ElementIterator, element: unknown): HeldElements {
  keepMemory(element);
  const token = input.token();
  return { elements: [element], tokens: token === undefined ? [] : [token] };
}

/**
 * The held element as the argument of a function, which may change it in place: a copy if the element
 * is saved by content, because `restore()` repeats the call.
 */
export function argumentOf({ elements, tokens }: HeldElements): unknown {
  return tokens.length > 0 ? elements[0] : copyTree(elements[0]);
}

export function saveHeld({ elements, tokens }: HeldElements): unknown {
  return tokens.length === elements.length ? { tokens: [...tokens] } : { elements: [...elements] };
}

/** Restores what `saveHeld` saved. `input` is the iterator that gave the elements. */
export async function restoreHeld(state: unknown, input: ElementIterator): Promise<HeldElements> {
  const saved = wholeState(state) as
    | { readonly tokens: Token[] }
    | { readonly elements: unknown[] };
  if (!("tokens" in saved)) return { elements: saved.elements, tokens: [] };
  const elements: unknown[] = [];
  for (const token of saved.tokens) elements.push(await input.again(token));
  return { elements, tokens: saved.tokens };
}
