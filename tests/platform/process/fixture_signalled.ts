/** A program that tells its process id, for the test of `ChildProcess` and signals. */
import { linkToParent, localNode } from "../../../platform/process/parent_link.ts";
import { Edge } from "../../../platform/sandbox/edge.ts";

const edge = new Edge(linkToParent(), localNode(), { pid: () => Deno.pid });
edge.closed.then(() => Deno.exit());
