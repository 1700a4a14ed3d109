/** Adds to an error, for a Python program, where in the pipeline's files it was thrown. */
import { LeatError } from "../../core/error.ts";

/** Limit of the places that an error names. */
const PLACES_MAX = 8;
/** Leat's own folders. */
const OWN = ["actors", "cli", "core", "data", "offload", "platform", "server", "transport"]
  .map((layer) => new URL(`../../${layer}/`, import.meta.url).href);

/**
 * The error, with `details.places`: `file:line:column` of the calls outside Leat that led to it or
 * to its first cause, the innermost first. Unchanged if there are none.
 */
export function withStack(thrown: unknown): LeatError {
  const error = LeatError.from(thrown);
  const places = placesOf(thrown);
  if (places.length === 0) return error;
  const { code, message, details, cause } = error;
  return new LeatError(code, message, { cause, details: { ...details, places } });
}

function placesOf(thrown: unknown): string[] {
  let places: string[] = [];
  let error = thrown;
  for (let depth = 0; error instanceof Error && depth < PLACES_MAX; depth++) {
    const found = [
      ...(error.stack ?? "").matchAll(/^\s+at .*?\(?((?:file|https?):\/\/\S+?:\d+:\d+)\)?$/gm),
    ]
      .map((match) => match[1]!)
      .filter((place) => !OWN.some((layer) => place.startsWith(layer)));
    if (found.length > 0) places = found;
    error = error.cause;
  }
  return places.slice(0, PLACES_MAX);
}
