/**
 * Wrong consumers of one DETERMINISTIC stream, by what they would say.
 *
 * @module
 */
import type { ElementSourceProtocol } from "../../actors/worker/protocol.ts";
import type { RequestOf } from "../../actors/runtime/protocol.ts";
import { asksChanged, type Mutant } from "./mutant.ts";

type ElementRequest = RequestOf<ElementSourceProtocol, "getElement">;

/** See the module. */
export const CONSUMER_MUTANTS: readonly Mutant[] = [
  {
    name: "consumer-for-another",
    wrong: "a consumer that asks for what is the first one's",
    workload: "consumers",
    crashes: [],
    install: () =>
      asksChanged<ElementRequest>("getElement", (body) => ({
        ...body,
        ...(body.consumerIndex === undefined ? {} : { consumerIndex: 0 }),
      })),
  },
];
