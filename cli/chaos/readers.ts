/**
 * Gives each reader of this process its own node, from which it dials the cluster, so that a cut
 * connection belongs to one reader.
 */
import type { ClientHome } from "../../actors/client/starting.ts";
import { Homes, type HomesOptions, registerHome } from "../../platform/nodes/client_homes.ts";
import type { Deployment } from "../cluster/deployment.ts";

/** In ms: longer than any fault, also on a slow machine. */
const FIRST_ANSWER_TIMEOUT_MS = 120_000;
/** In ms: short, so that a reader soon repeats a request whose answer was lost. */
const REQUEST_TIMEOUT_MS = 5_000;

/** The timings of a reader. */
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
  const unregister = registerHome(address, () => ({
    ...homes.open(dispatcher.address, { token }),
    timings: {
      firstAnswerTimeoutMs: FIRST_ANSWER_TIMEOUT_MS,
      requestTimeoutMs: REQUEST_TIMEOUT_MS,
      ...options,
    },
  }));
  return { address, [Symbol.dispose]: unregister };
}
