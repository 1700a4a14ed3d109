/** Reads the headers of a request or an answer (RFC 9112, section 5). */

/** `Headers` removes the space around a value: another `[ \t]*` here would take quadratic time. */
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\x20-\x7e\x80-\xff\t]*)$/;

/** The headers in the lines of a head; `undefined` if a line is none. */
export function headersOf(lines: readonly string[]): Headers | undefined {
  const headers = new Headers();
  for (const line of lines) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    headers.append(name, value);
  }
  return headers;
}
