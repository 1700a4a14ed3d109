/**
 * Copies of message bodies for deliveries that cross no thread and no wire.
 *
 * @module
 */

/** An instance that knows how it reaches a receiver that may write to what it gets. */
export interface HandedOver {
  /**
   * What the receiver gets: this instance itself when nobody else needs it any more.
   *
   * @param kept The sender keeps this instance, to send it again.
   */
  handOver(kept: boolean): unknown;
}

/**
 * A copy of plain data, so that sender and receiver never see each other's later changes. Instances
 * of classes (payloads, tensors) are handed over, those that are {@linkcode HandedOver} in their own
 * way: the sender must not write to them afterwards.
 *
 * @param kept The sender keeps the body, to send it again. Default false.
 */
export function copyBody(value: unknown, kept = false): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => copyBody(item, kept));
  if (ArrayBuffer.isView(value)) {
    return value instanceof DataView ? structuredClone(value) : (value as Uint8Array).slice();
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    return isHandedOver(value) ? value.handOver(kept) : value;
  }
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    copy[key] = copyBody((value as Record<string, unknown>)[key], kept);
  }
  return copy;
}

function isHandedOver(value: object): value is HandedOver {
  return typeof (value as Partial<HandedOver>).handOver === "function";
}
