/** `snapshot`: keeps elements in files, in a separate folder for each pipeline before it. */
import type { Dataset } from "../../dataset.ts";
import type { Captures } from "../../udf/user_function.ts";
import type { ElementFunction, FunctionOptions } from "../../dataset_types.ts";
import { Call, type NodeFunction } from "../../udf/call.ts";
import { checkPath, optionsOf } from "../../check.ts";
import type { IteratorContext } from "../../context.ts";
import { inOrder } from "../../deterministic/chain.ts";
import type { ElementIterator } from "../../iterator.ts";
import {
  type Attributes,
  type DatasetNode,
  registerNode,
  UNKNOWN_CARDINALITY,
} from "../../node.ts";
import { signatureOf } from "../../checkpoint/saving.ts";
import { type Manifest, within } from "../../saved/manifest.ts";
import { checkWritingCompression } from "../../saved/save.ts";
import { shardBy, shardDatasets } from "../../saved/shards.ts";
import { storedNode } from "../../saved/stored_node.ts";
import { type Storing, StoringIterator } from "../../saved/storing_iterator.ts";
import type { ElementSpec } from "../../elements/spec.ts";
import { Nested } from "../combining/opened.ts";
import { withDrawnSeed } from "../options.ts";
import { UnaryNode } from "../unary.ts";
import { storedPipeline } from "./stored_pipeline.ts";

export interface SnapshotAttributes {
  readonly compression?: unknown;
  readonly readerFunc?: NodeFunction | undefined;
  readonly shardFunc?: NodeFunction | undefined;
}

/** Options of `snapshot`. */
export interface SnapshotOptions<T, R, C extends Captures> extends FunctionOptions<C> {
  /** How files are compressed. Default: not at all. */
  readonly compression?: "gzip";
  /** Assigns elements to shards, numbered from 0 to at most 1023. Default: one shard. */
  readonly shardFunc?: ElementFunction<T, number | bigint | Promise<number>, C>;
  /**
   * Combines the datasets of the shards when the copy is read. Default: one shard after the other. The
   * pass that writes the copy gives the elements of the input.
   */
  readonly readerFunc?: ElementFunction<Dataset<Dataset<T>>, Dataset<R> | Promise<Dataset<R>>, C>;
}

export class SnapshotNode extends UnaryNode {
  static readonly options = optionsOf<SnapshotOptions<unknown, unknown, Captures>>("snapshot", {
    compression: true,
    shardFunc: true,
    readerFunc: true,
    captures: true,
  });
  override readonly division = "stored";
  override readonly adviceFacts = { opensDatasets: true } as const;
  readonly path: string;
  readonly compression: "gzip" | undefined;
  readonly readerFunc: NodeFunction | undefined;
  readonly shardFunc: NodeFunction | undefined;

  constructor(input: DatasetNode, path: unknown, options: SnapshotAttributes = {}) {
    super("snapshot", inOrder(input));
    this.path = checkPath("snapshot", path);
    this.compression = checkWritingCompression("snapshot", options.compression);
    this.readerFunc = options.readerFunc;
    this.shardFunc = options.shardFunc;
  }

  override get storesInput(): boolean {
    return true;
  }

  /** The dataset that `readerFunc` returns may draw, also if the function itself does not. */
  override get drawsNumbers(): boolean {
    return this.readerFunc !== undefined;
  }

  override get attributes(): Attributes {
    const { path, compression, readerFunc, shardFunc } = this;
    return { path, compression, readerFunc, shardFunc };
  }

  override get cardinality(): number {
    return this.readerFunc === undefined ? this.input.cardinality : UNKNOWN_CARDINALITY;
  }

  /** Unknown if `readerFunc` may change elements. */
  override get elementSpec(): ElementSpec {
    return this.readerFunc === undefined ? this.storedSpec : undefined;
  }

  get storedSpec(): ElementSpec {
    return this.input.elementSpec;
  }

  /** The folder of the elements that its input gives with the seed of a pipeline's `withOptions`. */
  folderWith(seed: bigint | undefined): string {
    return within(this.path, signatureOf(withDrawnSeed(this.input, seed)));
  }

  override makeIterator(context: IteratorContext): ElementIterator {
    return new StoringIterator(context, snapshotting(context, this));
  }
}

registerNode("snapshot", { fromWire: (a, [input]) => new SnapshotNode(input!, a.path, a) });

function snapshotting(context: IteratorContext, node: SnapshotNode): Storing {
  const { compression, storedSpec: spec } = node;
  const pipeline = storedPipeline(context, node.inputs[0]!);
  const folder = within(node.path, pipeline);
  const reader = node.readerFunc && new Call(node.readerFunc, context, { name: "readerFunc" });
  const shard = node.shardFunc &&
    Call.further(node.shardFunc, "shardFunc", context);
  const open = async (manifest: Manifest, make: (reader: Call, datasets: unknown) => unknown) => {
    if (reader === undefined) {
      return new Nested(storedNode(folder, manifest), () => context.randomStream(), context);
    }
    const made = await make(reader, shardDatasets(folder, manifest));
    return Nested.madeBy(reader, 0, made, context);
  };
  return {
    operator: "snapshot",
    folder,
    options: { compression, spec, pipeline },
    passesWhileLocked: true,
    calls: shard === undefined ? [] : [shard],
    shardOf: (element) => shardBy("snapshot", shard, element),
    open: (manifest) => open(manifest, (reader, datasets) => reader.one(datasets)),
    openAgain: (manifest) => open(manifest, (reader, datasets) => reader.again(0, datasets)),
  };
}
