/** Makes iterators for pipelines that read from a service. Loaded only for such pipelines. */
import { accessFrom } from "../../actors/client/access.ts";
import { serviceIterator } from "../../actors/client/distributed_iterator.ts";
import type { IteratorFactory } from "../../data/node.ts";
import { Homes, type ServiceCredentials } from "./client_homes.ts";

/** @param services Credentials of the services, by address. */
export function servedIterators(services: ServiceCredentials | undefined): IteratorFactory {
  const access = accessFrom(new Homes({ services }).open);
  return (node, context) => serviceIterator(node, context, access);
}
