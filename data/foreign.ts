/**
 * Pipelines that this program did not build: those that `Dataset.deserialize`, `Dataset.fromId` and stored elements give.
 *
 * Such a pipeline may be read, sent on and run by workers. In the process that holds it, its functions are not called, its modules not
 * imported and its files not opened, unless its user says that its author is trusted.
 */
import { LeatError } from "../core/error.ts";
import { NodeFunction } from "./call.ts";
import type { AudioCodec, Files, Host, ImageCodec, NewFiles } from "./host.ts";
import { type Attributes, type DatasetNode, nodeKind } from "./node.ts";
import { ReadingFailure } from "./reading_failure.ts";

const foreign = new WeakSet<DatasetNode>();

/** Says that a node was not built by this program. */
export function markForeign(node: DatasetNode): void {
  foreign.add(node);
}

/** Whether a node was not built by this program. */
export function isForeign(node: DatasetNode): boolean {
  return foreign.has(node);
}

/** The same operator with other attributes or inputs. It is as foreign as `node` is. */
export function rebuilt(
  node: DatasetNode,
  attributes: Attributes,
  inputs: readonly DatasetNode[],
): DatasetNode {
  const copy = nodeKind(node.kind).fromWire(attributes, inputs);
  if (isForeign(node)) markForeign(copy);
  return copy;
}

/**
 * Refuses foreign functions among operators before anything of them runs.
 *
 * @throws {ReadingFailure} `permission_denied`, naming the first operator with a function, unless `host` runs foreign pipelines.
 */
export function refuseForeignFunctions(nodes: readonly DatasetNode[], host: Host): void {
  if (host.runsForeign === true) return;
  for (const node of nodes) {
    if (!isForeign(node)) continue;
    const hasFunction = Object.values(node.attributes).some((at) => at instanceof NodeFunction);
    if (hasFunction) throw refusal(`call the function of ${node.kind}`);
  }
}

/**
 * Refuses to dial the service that a foreign operator names.
 *
 * @throws {ReadingFailure} `permission_denied`, unless `host` runs foreign pipelines.
 */
export function refuseForeignService(node: DatasetNode, host: Host): void {
  if (isForeign(node) && host.runsForeign !== true) {
    throw refusal(`dial the service of ${node.kind}`);
  }
}

function refusal(what: string): ReadingFailure {
  return new ReadingFailure(
    new LeatError(
      "permission_denied",
      `This program did not build this pipeline, and does not ${what} with its own permissions. Read it with a ` +
        `processingMode that runs all of it on workers, such as DYNAMIC; or, if you trust its author as you trust ` +
        `your own code, say so: Dataset.fromId(service, id, { trustPipeline: true }) or ` +
        `Dataset.deserialize(bytes, { trustPipeline: true })`,
    ),
  );
}

/** What foreign operators are given as their host: time, luck and decoding, but no code and no files. */
export class ForeignHost implements Host {
  readonly #host: Host;
  readonly files: Files = {
    open: (path) => Promise.reject(refusal(`open ${path}`)),
    list: (pattern) => Promise.reject(refusal(`list ${pattern}`)),
  };
  readonly newFiles: NewFiles = {
    create: (path) => Promise.reject(refusal(`write ${path}`)),
    remove: (path) => {
      throw refusal(`remove ${path}`);
    },
  };

  constructor(host: Host) {
    this.#host = host;
  }

  get images(): ImageCodec {
    return this.#host.images;
  }

  get audio(): AudioCodec {
    return this.#host.audio;
  }

  nowMs(): number {
    return this.#host.nowMs();
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#host.sleep(ms, signal);
  }

  yield(): Promise<void> {
    return this.#host.yield();
  }

  entropy64(): bigint {
    return this.#host.entropy64();
  }

  warn(message: string): void {
    this.#host.warn(message);
  }

  evaluate(): never {
    throw refusal("call its functions");
  }

  importModule(url: string): Promise<never> {
    return Promise.reject(refusal(`import ${url}`));
  }
}
