/** Formats amounts for people. */

const UNITS = ["bytes", "kB", "MB", "GB", "TB"];

/** `512 MB`: three digits, units of 1000 bytes. */
export function bytesText(bytes: number): string {
  let unit = 0;
  let amount = bytes;
  for (; amount >= 999.5 && unit < UNITS.length - 1; unit++) amount /= 1000;
  return `${roundText(amount)} ${UNITS[unit]}`;
}

/** `1.25 s`, `80 ms`. */
export function durationText(ms: number): string {
  return ms >= 999.5 ? `${roundText(ms / 1000)} s` : `${roundText(ms)} ms`;
}

/** `71 %` of 0.71. */
export function percentText(part: number): string {
  return `${Math.round(100 * part)} %`;
}

/** `1 worker`, `2 workers`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** At most three significant digits. */
function roundText(amount: number): string {
  return String(amount >= 100 ? Math.round(amount) : Number(amount.toPrecision(3)));
}
