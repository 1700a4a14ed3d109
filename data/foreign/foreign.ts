/**
 * Foreign pipelines: those that this program did not build, but got from `Dataset.deserialize`,
 * `Dataset.fromId` or stored elements.
 *
 * A foreign pipeline may be read, sent on and run by workers. The process that holds it calls none of
 * its functions, imports none of its modules and opens none of its files, unless the user declares
 * its author trusted. Its functions run in a confined process, if the host has one.
 */
import { LeatError } from "../../core/error.ts";
import { shownPath } from "../../core/shown_text.ts";
import { NodeFunction } from "../udf/call.ts";
import { DelegatingHost } from "./delegating_host.ts";
import type { Files, Host, NewFiles } from "../host.ts";
import { type Attributes, type DatasetNode, nodeKind } from "../node.ts";
import { ReadingFailure } from "../iterators/reading_failure.ts";

const foreign = new WeakSet<DatasetNode>();

export function markForeign(node: DatasetNode): void {
  foreign.add(node);
}

export function isForeign(node: DatasetNode): boolean {
  return foreign.has(node);
}

/** The same operator with other attributes or inputs; foreign if `node` is. */
export function rebuilt(
  node: DatasetNode,
  attributes: Attributes,
  inputs: readonly DatasetNode[],
): DatasetNode {
  const copy = nodeKind(node.kind).fromWire(attributes, inputs);
  if (isForeign(node)) markForeign(copy);
  return copy;
}

/** Whether an operator has a foreign function that must not be called in this process. */
export function hasForeignFunction(node: DatasetNode, host: Host): boolean {
  return host.runsForeign !== true && isForeign(node) &&
    Object.values(node.attributes).some((value) => value instanceof NodeFunction);
}

/**
 * Refuses foreign functions among operators before anything runs, unless a confined process can run
 * them.
 *
 * @throws {ReadingFailure} `permission_denied`, naming the first operator with a function.
 */
export function refuseForeignFunctions(nodes: readonly DatasetNode[], host: Host): void {
  const { foreignRunners } = host;
  if (foreignRunners !== undefined && foreignRunners.obstacle === undefined) return;
  const node = nodes.find((node) => hasForeignFunction(node, host));
  if (node !== undefined) {
    throw foreignRefusal(`call the function of ${node.kind}`, foreignRunners?.obstacle);
  }
}

/**
 * Refuses to dial the service that a foreign operator names.
 *
 * @throws {ReadingFailure} `permission_denied`, unless `host` runs foreign pipelines.
 */
export function refuseForeignService(node: DatasetNode, host: Host): void {
  if (isForeign(node) && host.runsForeign !== true) {
    throw foreignRefusal(`dial the service of ${node.kind}`);
  }
}

/** Like `refuseForeignService`, for the foreign operators of a graph that another process is to run. */
export function refuseForeignServices(node: DatasetNode): void {
  if (!isForeign(node)) return;
  if (node.division === "served") throw foreignRefusal(`dial the service of ${node.kind}`);
  node.inputs.forEach(refuseForeignServices);
}

/**
 * The error for an action that is refused to a foreign pipeline.
 *
 * @param obstacle Why no confined process can be started to perform the action.
 */
export function foreignRefusal(what: string, obstacle?: string): ReadingFailure {
  const instead = obstacle === undefined
    ? ""
    : ` A confined process could do it, but none can be started: ${obstacle}.`;
  return new ReadingFailure(
    new LeatError(
      "permission_denied",
      `This program did not build this pipeline, and does not ${what} with its own permissions.${instead} Read it ` +
        `with a processingMode that runs all of it on workers, such as DYNAMIC; or, if you trust its author as you ` +
        `trust your own code, say so: Dataset.fromId(service, id, { trustPipeline: true }) or ` +
        `Dataset.deserialize(bytes, { trustPipeline: true })`,
    ),
  );
}

/** The host of foreign operators: time, random numbers and decoding, but no files. */
class FilelessHost extends DelegatingHost {
  readonly files: Files = {
    open: (path) => Promise.reject(foreignRefusal(`open ${shownPath(path)}`)),
    list: (pattern) => Promise.reject(foreignRefusal(`list ${shownPath(pattern)}`)),
  };

  override get newFiles(): NewFiles {
    return NO_NEW_FILES;
  }
}

const NO_NEW_FILES: NewFiles = {
  create: (path) => Promise.reject(foreignRefusal(`write ${shownPath(path)}`)),
  remove: (path) => {
    throw foreignRefusal(`remove ${shownPath(path)}`);
  },
};

/** The host of foreign operators in the process that reads them: it runs no code for them. */
export class ForeignHost extends FilelessHost {
  evaluate(): never {
    throw foreignRefusal("call its functions");
  }

  override importModule(url: string): Promise<never> {
    return Promise.reject(foreignRefusal(`import ${shownPath(url)}`));
  }
}

/** The host of foreign operators in a confined process, which was started to run them. */
export class PartHost extends FilelessHost {
  readonly runsForeign = true;
}
