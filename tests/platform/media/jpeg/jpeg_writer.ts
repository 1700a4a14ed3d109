/** Parts of JPEGs, written from the specification. */

/** A marker with its segment. */
export function segment(marker: number, ...content: number[]): number[] {
  return [0xff, marker, 0, content.length + 2, ...content];
}
