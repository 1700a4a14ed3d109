/**
 * Where readers in this process dial the cluster from: each from a node of its own, so that a
 * connection that is cut is one reader's.
 *
 * @module
 */
import type { ClientHome } from "../../actors/client/starting.ts";
import { Homes, type HomesOptions, registerHome } from "../../platform/nodes/client_homes.ts";
import type { Deployment } from "../cluster/deployment.ts";

/** For the first answer a reader waits longer than any trouble lasts, in ms, on a slow machine too. */
const FIRST_ANSWER_TIMEOUT_MS = 120_000;
/** Short, so that a lost answer is soon asked for again, in ms. */
const REQUEST_TIMEOUT_MS = 5_000;

/** Timings that a reader sets itself. */
export type ReaderOptions = NonNullable<ClientHome["timings"]>;

/**
 * Makes the cluster known under an address, for one reader.
 *
 * @param print Gets the lines of its log.
 */
export function openReader(
  { dispatcher, token }: Deployment,
  name: string,
  options: ReaderOptions,
  print: NonNullable<HomesOptions["print"]>,
): { readonly address: string } & Disposable {
  const address = `chaos ${new URL(dispatcher.address).port} ${name}`;
  const homes = new Homes({ print });
  const forget = registerHome(address, () => ({
    ...homes.open(dispatcher.address, { token }),
    timings: {
      firstAnswerTimeoutMs: FIRST_ANSWER_TIMEOUT_MS,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      ...options,
    },
  }));
  return { address, [Symbol.dispose]: forget };
}
