/**
 * Computes the canonical stream of a pipeline by its definition (docs/reference/guarantees.md). It runs
 * every split alone, in order, in this process. Under DETERMINISTIC every cluster must give the same
 * stream.
 */
import { LeatError } from "../../core/error.ts";
import type { Dataset } from "../../data/dataset.ts";
import { type Host, installedHost } from "../../data/host.ts";
import { chainOf } from "../../data/deterministic/chain.ts";
import { RemainderJoin } from "../../data/deterministic/join.ts";
import { splitOrder } from "../../data/deterministic/order.ts";
import { openSplit } from "../../data/deterministic/split_run.ts";
import { listSplitTable } from "../../data/sharding/splits.ts";

/** One result of `next()` before the end. */
export type Given = { readonly element: unknown } | { readonly error: unknown };

/** What determines the stream, besides the dataset. */
export interface CanonicalOptions {
  readonly seed?: bigint;
  readonly epoch?: number;
  /** Default: the installed host. */
  readonly host?: Host;
}

/**
 * Computes the canonical stream of a dataset that is one chain.
 * @throws LeatError `invalid_argument` for any other dataset.
 */
export async function canonicalStream(
  dataset: Dataset<unknown>,
  { seed = 0n, epoch = 0, host = installedHost() }: CanonicalOptions = {},
): Promise<Given[]> {
  const chain = chainOf(dataset.node);
  if (chain === undefined) throw new LeatError("invalid_argument", "This dataset is no chain");
  const [table] = await listSplitTable(dataset.node, host);
  const join = new RemainderJoin(chain, { host, seed, epoch });
  const given: Given[] = [];
  const order = splitOrder(table!.length, { seed, epoch, shuffled: chain.shuffled });
  for (const [sequence, index] of order.entries()) {
    let remainder: unknown;
    const onRemainder = (found: unknown) => remainder = found;
    const split = table![index]!;
    await using run = openSplit(chain, { host, seed, epoch, index, split, onRemainder });
    given.push(...await allOf(run));
    if (remainder !== undefined) join.add(sequence, index, remainder);
    given.push(...await untilNone(() => join.next()));
  }
  given.push(...await untilNone(() => join.end()));
  return given;
}

async function untilNone(next: () => Promise<Given | undefined>): Promise<Given[]> {
  const given: Given[] = [];
  for (let one = await next(); one !== undefined; one = await next()) given.push(one);
  return given;
}

async function allOf(iterator: AsyncIterator<unknown>): Promise<Given[]> {
  const given: Given[] = [];
  for (;;) {
    try {
      const { done, value } = await iterator.next();
      if (done) return given;
      given.push({ element: value });
    } catch (error) {
      given.push({ error });
    }
  }
}
