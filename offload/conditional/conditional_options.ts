/** Options of the conditional operator. */
import type { IteratorContext } from "../../data/context.ts";
import type { OrderedChain } from "../../data/deterministic/chain.ts";
import type { DatasetNode } from "../../data/node.ts";
import type { OffloadFigures } from "../figures.ts";
import type { RemotePart } from "./remote_part.ts";

export interface ConditionalOptions {
  readonly context: IteratorContext;
  /** The part of the pipeline that may run remotely, and its analysis. */
  readonly root: DatasetNode;
  readonly chain: OrderedChain;
  readonly seed: bigint;
  /** The part that workers run at first. */
  readonly part: RemotePart;
  /** Whether elements come in the order of DETERMINISTIC, whichever side produces them. */
  readonly keepsOrder: boolean;
  /** Limit of the wait for one element of the service, in ms. */
  readonly timeoutMs: number;
  /** The service's address. */
  readonly address: string;
  readonly figures: OffloadFigures;
  /** How many workers suffice so that training does not wait; sent to the service. */
  readonly workers?: number | undefined;
}
