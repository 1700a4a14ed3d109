/**
 * Gives each reader in this process a node of its own to dial the cluster from, so that a cut
 * connection belongs to one reader.
 */
import type { ClientHome } from "../../actors/client/starting.ts";
import { Homes, type HomesOptions, registerHome } from "../../platform/nodes/client_homes.ts";
import type { Deployment } from "../cluster/deployment.ts";

/** Longer than any fault lasts, also on a slow machine, in ms. */
const FIRST_ANSWER_TIMEOUT_MS = 120_000;
/** Short, so that a reader soon repeats the request for a lost answer, in ms. */
const REQUEST_TIMEOUT_MS = 5_000;

/** Timings of a reader. */
export type ReaderOptions = NonNullable<ClientHome["timings"]>;

/**
 * Registers the cluster under an address for one reader.
 * @param print Receives the lines of the reader's log.
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
