/**
 * The iterators of pipelines that begin with a service, on a thread that dials services itself: loaded
 * where there is such a pipeline.
 *
 * @module
 */
import { accessFrom } from "../actors/client/access.ts";
import { servedIterator } from "../actors/client/distributed_iterator.ts";
import type { IteratorFactory } from "../data/node.ts";
import { Homes, type ServiceCredentials } from "./client_homes.ts";

/** @param services What opens the services, by their addresses. */
export function servedIterators(services: ServiceCredentials | undefined): IteratorFactory {
  const access = accessFrom(new Homes({ services }).open);
  return (node, context) => servedIterator(node, context, access);
}
