/** Saves whole datasets, and loads them. */
import { LeatError } from "../../core/error.ts";
import { then } from "../../core/then.ts";
import { shownPath } from "../../core/shown_text.ts";
import { Call, type NodeFunction } from "../udf/call.ts";
import { checkBoolean, checkInteger, checkPath, invalidArgument, optionsOf } from "../check.ts";
import { rootContext } from "../root_context.ts";
import type { IterationOptions } from "../iteration_options.ts";
import type { ElementFunction, FunctionOptions } from "../dataset_types.ts";
import type { Captures } from "../udf/user_function.ts";
import { installedHost } from "../host.ts";
import type { DatasetNode } from "../node.ts";
import { userErrorOf } from "../iterators/reading_failure.ts";
import { takeAll } from "../iterators/take_all.ts";
import { ElementsWriter } from "./elements_writer.ts";
import { Ledger, type LedgerHead } from "./ledger.ts";
import { type Manifest, readManifest } from "./manifest.ts";
import { shardBy } from "./shards.ts";

/** How much of a dataset is written. */
export interface SaveProgress {
  /** Elements written. */
  readonly elements: number;
  /** Bytes written, after compression, without buffered elements. */
  readonly sizeBytes: number;
}

/** Options of `save`. */
export interface SaveOptions<T, C extends Captures> extends FunctionOptions<C> {
  /** Assigns elements to shards, numbered from 0 to at most 1023. Default: one shard. */
  readonly shardFunc?: ElementFunction<T, number | bigint | Promise<number>, C>;
  /** Default: no compression. */
  readonly compression?: "gzip" | undefined;
  /** Whether to replace a saved dataset. If false, that fails with `already_exists`. Default false. */
  readonly overwrite?: boolean | undefined;
  /**
   * Size in bytes after which a new file begins. Workers, and readers that wait, read whole files.
   * Default 256 MiB.
   */
  readonly chunkBytesMax?: number | undefined;
  /** Called whenever bytes were written, and before the dataset is complete. An error ends `save`. */
  readonly onProgress?: ((progress: SaveProgress) => void) | undefined;
}

export const saveOptions = optionsOf<SaveOptions<unknown, Captures>>("save", {
  shardFunc: true,
  compression: true,
  overwrite: true,
  chunkBytesMax: true,
  onProgress: true,
  captures: true,
});

export type SaveAttributes = Omit<SaveOptions<never, Captures>, "shardFunc" | "captures">;

/** Checks the argument `compression` of operators that write elements. */
export function checkWritingCompression(operator: string, value: unknown): "gzip" | undefined {
  if (value === undefined || value === "gzip") return value;
  throw invalidArgument(operator, "compression", `"gzip"`, value);
}

/** Runs a graph to its end and writes its elements. After the first error it removes its files. */
export async function saveGraph(
  node: DatasetNode,
  path: unknown,
  { compression, overwrite, chunkBytesMax, onProgress }: SaveAttributes,
  shardFunc: NodeFunction | undefined,
  options: IterationOptions,
): Promise<SaveProgress> {
  const folder = checkPath("save", path);
  const mayReplace = checkBoolean("save", "overwrite", overwrite, false);
  const writerOptions = {
    compression: checkWritingCompression("save", compression),
    ...(chunkBytesMax === undefined
      ? {}
      : { chunkBytesMax: checkInteger("save", "chunkBytesMax", chunkBytesMax, 1) }),
    spec: node.elementSpec,
    // With shards, the order of chunks is known only at the end.
    ledger: shardFunc === undefined ? "entries" : "head",
  } as const;
  if (onProgress !== undefined && typeof onProgress !== "function") {
    throw invalidArgument("save", "onProgress", "a function", onProgress);
  }
  if (node.cardinality === Infinity) {
    throw new LeatError(
      "invalid_argument",
      "save: an endless dataset cannot be saved; save a part of it, with take(n)",
    );
  }
  const context = rootContext(node, { ...options, isReadOnly: shardFunc === undefined });
  const elements = context.makeIterator();
  let writer: ElementsWriter | undefined;
  try {
    writer = await ElementsWriter.begin(context.host, folder, writerOptions);
    if (!mayReplace && writer.replaces !== undefined) throw savedAlready(folder);
    await writer.clear((unfinished) => {
      if (!mayReplace && unfinished?.joint !== undefined) throw savedByOthers(folder);
    });
    const shardOf = shardFunc &&
      new Call(shardFunc, context.ofConsumer("save"), { name: "shardFunc" });
    await takeAll(context, elements, writing(writer, shardOf, onProgress));
    await writer.closeChunks();
    const progress = { elements: writer.count, sizeBytes: writer.sizeBytes };
    // Before the commit, because an error of the user's function must leave no saved dataset.
    onProgress?.(progress);
    await writer.finish();
    return progress;
  } catch (error) {
    throw userErrorOf(error);
  } finally {
    elements.dispose();
    await context.close();
    writer?.abandon();
  }
}

/** Writes an element, and reports that bytes were written. */
function writing(
  writer: ElementsWriter,
  shardOf: Call | undefined,
  onProgress: SaveOptions<never, Captures>["onProgress"],
): (element: unknown) => void | Promise<void> {
  let sizeBytes = 0;
  const report = () => {
    if (writer.sizeBytes <= sizeBytes) return;
    sizeBytes = writer.sizeBytes;
    onProgress?.({ elements: writer.count, sizeBytes });
  };
  return (element) => {
    const shard = shardBy("save", shardOf, element);
    return then(then(shard, (shard) => writer.write(element, shard)), report);
  };
}

function savedAlready(folder: string): LeatError {
  return new LeatError(
    "already_exists",
    `save: ${folder} holds a saved dataset. Save to another folder, or with { overwrite: true }.`,
  );
}

function savedByOthers(folder: string): LeatError {
  return new LeatError(
    "already_exists",
    `save: distributedSave() writes to ${folder}, or has not finished its save: call it again to continue, save to ` +
      `another folder, or pass { overwrite: true }.`,
  );
}

/** The manifest of a folder. Throws `not_found` if the folder has no finished dataset. */
export async function savedIn(path: unknown): Promise<Manifest> {
  const folder = checkPath("load", path);
  const host = installedHost();
  const manifest = await readManifest(host, folder);
  if (manifest !== undefined) return manifest;
  throw notSaved(shownPath(folder), await new Ledger(host, folder).head());
}

function notSaved(folder: string, head: LedgerHead | undefined): LeatError {
  const missing = "it has no file DONE, which is written last";
  if (head === undefined) {
    return new LeatError("not_found", `load: ${folder} holds no saved dataset: ${missing}.`);
  }
  const { failure, joint } = head;
  const again = joint === undefined ? "save()" : "distributedSave()";
  // The message of a failure ends with what to do.
  const why = failure === undefined
    ? `it is still being written, or its writer ended early (${missing}). Read it while it is written with { wait: true }, or ` +
      `call ${again} again.`
    : `saving it has failed: ${LeatError.fromWire(failure).message}`;
  return new LeatError("not_found", `load: ${folder} holds no saved dataset yet: ${why}`);
}
