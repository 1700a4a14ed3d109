/**
 * Copies of message bodies for deliveries that cross no thread and no wire.
 *
 * @module
 */

/**
 * A copy of plain data, so that sender and receiver never see each other's later changes. Instances
 * of classes (payloads, tensors) are handed over: the sender must not write to them afterwards.
 */
export function copyBody(value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyBody);
  if (ArrayBuffer.isView(value)) {
    return value instanceof DataView ? structuredClone(value) : (value as Uint8Array).slice();
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) {
    copy[key] = copyBody((value as Record<string, unknown>)[key]);
  }
  return copy;
}
