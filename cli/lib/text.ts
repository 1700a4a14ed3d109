/**
 * Wraps a paragraph at `columns`. Only longer words exceed that. A non-breaking
 * space is part of a word.
 */
export function wrap(paragraph: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of paragraph.split(/[ \n]+/)) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) {
      lines[lines.length - 1] = `${last} ${word}`;
    } else {
      lines.push(word);
    }
  }
  return lines;
}
