/** `webDataset`: the samples of tar archives that follow WebDataset's convention. */
import { checkInteger, invalidArgument, optionsOf, show } from "../check.ts";
import { ByteReader } from "../formats/byte_reader.ts";
import type { ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type DecodedExtension, PART_DECODERS, SAMPLE_KEY } from "../formats/tar/sample_parts.ts";
import type {
  SampleOptions,
  SamplePosition,
  WebDatasetReader,
} from "../formats/tar/web_dataset.ts";
import { type Attributes, registerNode } from "../node.ts";
import { type ElementSpec, TensorSpec } from "../elements/spec.ts";
import { FileSourceNode, type FileSourceOptions } from "./file_source.ts";

/** Default maximum bytes of a sample. */
const SAMPLE_BYTES_MAX = 1024 * 1024 * 1024;

/** How archives are read. */
export interface WebDatasetOptions extends FileSourceOptions {
  /**
   * The extensions to keep, such as `["jpg", "cls"]`; default: all. Files with others are skipped. A
   * sample that has some of them but not all is lost, with a `data_loss` error.
   */
  readonly extensions?: readonly string[] | undefined;
  /**
   * The extensions to decode, by their last part: `json` to its value, `txt` to a string, `cls` to a
   * whole number of int32. Files with other extensions stay bytes. Default: none is decoded.
   */
  readonly decode?: readonly DecodedExtension[] | undefined;
  /**
   * Maximum bytes of the parts of a sample: their contents, their names, and 512 for each part. A larger
   * sample is an error. Default 1 GiB.
   */
  readonly sampleBytesMax?: number | undefined;
}

/** Unchecked constructor options. */
interface Unchecked {
  readonly compression?: unknown;
  readonly numParallelReads?: unknown;
  readonly extensions?: unknown;
  readonly decode?: unknown;
  readonly sampleBytesMax?: unknown;
}

/** Reads each sample as an object of its key and its parts: see {@linkcode WebDatasetReader}. */
export class WebDatasetNode extends FileSourceNode {
  static readonly options = optionsOf<WebDatasetOptions>("webDataset", {
    extensions: true,
    decode: true,
    sampleBytesMax: true,
    compression: true,
    numParallelReads: true,
  });
  readonly #samples: SampleOptions;

  constructor(files: unknown, options: Unchecked = {}) {
    super("webDataset", files, options);
    const { extensions, decode = [], sampleBytesMax = SAMPLE_BYTES_MAX } = options;
    const decodable = Object.keys(PART_DECODERS);
    this.#samples = {
      extensions: extensions === undefined ? undefined : checkNames("extensions", extensions),
      decode: checkNames("decode", decode, decodable),
      sampleBytesMax: checkInteger("webDataset", "sampleBytesMax", sampleBytesMax, 1),
    };
  }

  override get attributes(): Attributes {
    const { extensions, decode, sampleBytesMax } = this.#samples;
    return {
      ...super.attributes,
      ...(extensions === undefined ? {} : { extensions: [...extensions] }),
      decode: [...decode],
      sampleBytesMax,
    };
  }

  /** Known if the `extensions` are given. */
  override get elementSpec(): ElementSpec {
    const { extensions, decode } = this.#samples;
    if (extensions === undefined) return undefined;
    const parts = [...extensions].map((extension) => [extension, specOf(extension, decode)]);
    return Object.fromEntries([[SAMPLE_KEY, new TensorSpec("string", [])], ...parts]);
  }

  override async openReader(
    source: SourceFile,
    { position }: ReadFrom,
  ): Promise<WebDatasetReader> {
    // Loaded only when such files are read.
    const { WebDatasetReader } = await import("../formats/tar/web_dataset.ts");
    const from = position as SamplePosition | undefined;
    const bytes = ByteReader.of(source, from?.offset);
    return new WebDatasetReader(bytes, this.#samples, from?.ended);
  }
}

registerNode("webDataset", { fromWire: (a, [files]) => new WebDatasetNode(files, a) });

/** Checks an array of extensions. If `allowed` is given, they must be among these. */
function checkNames(
  argument: string,
  value: unknown,
  allowed?: readonly string[],
): ReadonlySet<string> {
  const isName = (name: unknown) =>
    typeof name === "string" && !name.startsWith(".") && (allowed?.includes(name) ?? true);
  if (!Array.isArray(value) || !value.every(isName)) {
    const wanted = allowed === undefined
      ? `extensions without their dot, as ["jpg", "cls"]`
      : `some of ${allowed.map(show).join(", ")}`;
    throw invalidArgument("webDataset", argument, `an array of ${wanted}`, value);
  }
  return new Set(value.map((name: string) => name.toLowerCase()));
}

function specOf(extension: string, decode: ReadonlySet<string>): TensorSpec | undefined {
  const last = extension.slice(extension.lastIndexOf(".") + 1);
  if (!decode.has(last)) return new TensorSpec("bytes", []);
  if (last === "json") return undefined;
  return new TensorSpec(last === "cls" ? "int32" : "string", []);
}
