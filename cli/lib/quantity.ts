/** Numbers with a unit, and whether they were measured or modelled. */

import { LeatError } from "../../core/error.ts";

/**
 * Whether a number was measured in a run, or computed from a model (a price, a simulated step
 * time).
 */
export type Provenance = "measured" | "modelled";

/** The units. `1` is that of a share or a ratio. */
export type Unit =
  | "1"
  | "ms"
  | "µs"
  | "messages/s"
  | "s"
  | "batches"
  | "batches/s"
  | "tokens/s"
  | "bytes"
  | "KB"
  | "MB"
  | "cores"
  | "USD"
  | "elements";

/** A number with its unit and provenance. */
export interface Quantity {
  value: number;
  unit: Unit;
  provenance: Provenance;
}

export function measured(value: number, unit: Unit): Quantity {
  return { value, unit, provenance: "measured" };
}

/** A number computed from a model. */
export function modelled(value: number, unit: Unit): Quantity {
  return { value, unit, provenance: "modelled" };
}

/** Returns `quantity / base`, which is modelled if either of the two is. */
export function ratio(quantity: Quantity, base: Quantity): Quantity {
  if (quantity.unit !== base.unit) {
    throw new LeatError(
      "invalid_argument",
      `ratio: ${quantity.unit} over ${base.unit}; both must have one unit`,
    );
  }
  const bothMeasured = quantity.provenance === "measured" && base.provenance === "measured";
  return {
    value: quantity.value / base.value,
    unit: "1",
    provenance: bothMeasured ? "measured" : "modelled",
  };
}
