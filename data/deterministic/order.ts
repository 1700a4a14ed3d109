/** The order of the splits of an ordered chain. */
import { RandomStream } from "../../core/philox.ts";

/** Determines the order, together with the number of splits. */
export interface OrderSeed {
  readonly seed: bigint;
  readonly epoch: number;
  /** Whether the order is drawn; otherwise it is the table's. */
  readonly shuffled: boolean;
}

/** Indices into the table of `count` splits, in reading order. */
export function splitOrder(count: number, { seed, epoch, shuffled }: OrderSeed): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  if (!shuffled) return order;
  const random = new RandomStream(seed, ["order of splits", epoch]);
  for (let last = count - 1; last > 0; last--) {
    const other = random.int(last + 1);
    const index = order[last]!;
    order[last] = order[other]!;
    order[other] = index;
  }
  return order;
}
