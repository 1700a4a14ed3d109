/** Adds to an error, for a Python program, the calls in the pipeline's files that led to it. */
import { causesOf, LeatError } from "../../core/error.ts";

/** Limit of the places that an error names. */
const PLACES_MAX = 8;
/** Leat's own folders, as Deno writes them in stacks: without escapes of URLs. */
const OWN = ["actors", "cli", "core", "data", "offload", "platform", "server", "transport"]
  .map((layer) => decodeURIComponent(new URL(`../../${layer}/`, import.meta.url).href));

/**
 * Returns the error with `details.places`: `file:line:column` of the calls outside Leat that led to
 * it or to its first cause, the innermost first. If there are none, the error is unchanged.
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
  for (const { stack = "" } of causesOf(thrown)) {
    const placesOfError = stack.split("\n").flatMap(placeOf)
      .filter((place) => !OWN.some((layer) => place.startsWith(layer)));
    if (placesOfError.length > 0) places = placesOfError;
  }
  return places.slice(0, PLACES_MAX);
}

/** The file, line and column of a call in a line of a stack, if there are any. */
function placeOf(line: string): string[] {
  const at = line.search(/(?:file|https?):\/\//);
  const place = line.slice(at).replace(/\)$/, "");
  return at >= 0 && /^\s+at /.test(line) && /:\d+:\d+$/.test(place) ? [place] : [];
}
