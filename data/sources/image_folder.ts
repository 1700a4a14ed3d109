/** `imageFolder`: images in one folder per class, labelled with the class. */
import { LeatError } from "../../core/error.ts";
import type { Tensor } from "../../core/tensor.ts";
import { isPlainObject } from "../../core/tree.ts";
import {
  checkBoolean,
  checkInteger,
  checkSeed,
  invalidArgument,
  optionsOf,
  show,
} from "../check.ts";
import { ByteReader } from "../formats/byte_reader.ts";
import type { FormatReader, ReadFrom, SourceFile } from "../formats/format_reader.ts";
import { type WholeFilePosition, wholeFileReader } from "../formats/whole_file.ts";
import { escapeGlob, type Host, type ImageDecodeOptions, installedHost } from "../host.ts";
import { ListedHost } from "../deterministic/listed_host.ts";
import { type Attributes, registerNode } from "../node.ts";
import { type ElementSpec, TensorSpec } from "../elements/spec.ts";
import { FileSourceNode } from "./file_source.ts";
import { ListFilesNode, type ListFilesOptions } from "./list_files.ts";
import { storageError } from "./reading/storage_errors.ts";

/** Extensions of the files that are read, in any case. */
const EXTENSIONS = ["jpg", "jpeg", "png", "webp"];

/** An image and the label of its class. */
export interface LabelledImage<I = Tensor<"uint8">> {
  /** Its pixels, uint8 of shape [height, width, channels], or the bytes of its file. */
  readonly image: I;
  /** Index of its class among the class names. */
  readonly label: number;
}

/** How a folder of images is read. */
export interface ImageFolderOptions extends ListFilesOptions {
  /**
   * The classes, in the order of their labels; other folders are skipped. Each needs an image: without
   * one, reading fails with `not_found`. Default: all folders with images, sorted by code units.
   */
  readonly classNames?: readonly string[] | undefined;
  /** How images are decoded. Default: to RGB in their own size. `false` gives the bytes of the files. */
  readonly decode?: ImageDecodeOptions | false | undefined;
  /** Whether elements have the path of their file, too, as `path`; default false. */
  readonly path?: boolean | undefined;
  /** Number of images read concurrently. Default 1. `AUTOTUNE` is 4. */
  readonly numParallelReads?: number | undefined;
}

/**
 * Returns the names of the classes in a folder, in the order of their labels. They are its folders that
 * contain images at any depth, sorted by code units.
 *
 * @param root The folder with one folder per class.
 * @throws {LeatError} `not_found` if no folder of `root` has an image.
 *
 * @example
 * ```ts
 * import { imageClasses } from "../../mod.ts";
 *
 * const classNames = await imageClasses("./flowers").catch(() => ["daisy", "tulip"]);
 * ```
 */
export async function imageClasses(
  root: string,
  host: Host = installedHost(),
): Promise<string[]> {
  const folder = checkRoot(root);
  const paths = await new ListFilesNode(patternsOf(folder)).list(host);
  return [...new Set(paths.map((path) => classOf(path, folder)))].sort();
}

/** Reads each image with its label, decoded by the host. An image that cannot be decoded is lost. */
export class ImageFolderNode extends FileSourceNode {
  static readonly options = optionsOf<ImageFolderOptions>("imageFolder", {
    classNames: true,
    decode: true,
    path: true,
    numParallelReads: true,
    shuffle: true,
    seed: true,
  });
  readonly root: string;
  readonly classNames: readonly string[] | undefined;
  readonly decode: ImageDecodeOptions | false;
  readonly path: boolean;
  /** Labels by class. Classes are listed once per host: later epochs of a program keep the labels. */
  readonly #labels = new WeakMap<Host, Promise<ReadonlyMap<string, number>>>();

  /** @param listing The node that lists the files. Default: a new one. */
  constructor(
    root: unknown,
    options: { readonly [name in keyof ImageFolderOptions]?: unknown } = {},
    listing?: unknown,
  ) {
    const folder = checkRoot(root);
    const classNames = checkClassNames(options.classNames);
    const order = {
      shuffle: checkBoolean("imageFolder", "shuffle", options.shuffle, true),
      seed: checkSeed("imageFolder", options.seed),
      // A misspelt class would otherwise be left out in silence.
      needsEach: classNames !== undefined,
    };
    super("imageFolder", listing ?? new ListFilesNode(patternsOf(folder, classNames), order), {
      numParallelReads: options.numParallelReads,
    });
    this.root = folder;
    this.classNames = classNames;
    this.decode = checkDecode(options.decode);
    this.path = checkBoolean("imageFolder", "path", options.path, false);
  }

  override get attributes(): Attributes {
    const { root, classNames, decode, path } = this;
    return {
      ...super.attributes,
      root,
      ...(classNames === undefined ? {} : { classNames }),
      decode,
      ...(path ? { path } : {}),
    };
  }

  override get isOnePerFile(): boolean {
    return true;
  }

  override get elementSpec(): ElementSpec {
    return {
      image: imageSpec(this.decode),
      label: new TensorSpec("int32", []),
      ...(this.path ? { path: new TensorSpec("string", []) } : {}),
    };
  }

  override async openReader(
    source: SourceFile,
    { position }: ReadFrom,
    host: Host,
  ): Promise<FormatReader> {
    const labels = await this.#labelsOn(host);
    const convert = async (contents: Uint8Array) => {
      const image = this.decode === false
        ? contents
        : await host.images.decode(contents, this.decode);
      const { path } = source;
      const labelled = { image, label: this.#labelOf(path, labels) };
      return this.path ? { ...labelled, path } : labelled;
    };
    return wholeFileReader(ByteReader.of(source), convert, position as WholeFilePosition);
  }

  /** Returns the label of a file's class. */
  #labelOf(path: string, labels: ReadonlyMap<string, number>): number {
    const name = classOf(path, this.root);
    const label = labels.get(name);
    if (label !== undefined) return label;
    throw new LeatError(
      "failed_precondition",
      `the class ${show(name)} did not exist when the classes of ${this.root} were listed.`,
    );
  }

  #labelsOn(host: Host): Promise<ReadonlyMap<string, number>> {
    // Each epoch of splits has a `ListedHost` of its own.
    const key = host instanceof ListedHost ? host.base : host;
    return this.#labels.getOrInsertComputed(key, () => {
      const labels = this.#listLabels(host);
      // Forgets a failed listing: storage may be available again for the next image.
      labels.catch(() => this.#labels.delete(key));
      return labels;
    });
  }

  async #listLabels(host: Host): Promise<ReadonlyMap<string, number>> {
    const names = this.classNames ?? await imageClasses(this.root, host).catch((error) => {
      throw storageError(error);
    });
    return new Map(names.map((name, label) => [name, label]));
  }
}

registerNode("imageFolder", {
  fromWire: (a, [listing]) => new ImageFolderNode(a.root, a, listing),
});

function checkRoot(root: unknown): string {
  if (typeof root !== "string" || root === "") {
    throw invalidArgument("imageFolder", "root", "the path of a folder", root);
  }
  return root.replace(/(?<=^\/|[^/])\/+$/, "");
}

function checkClassNames(value: unknown): readonly string[] | undefined {
  if (value === undefined) return undefined;
  const isName = (name: unknown) => typeof name === "string" && /^[^/]+$/.test(name);
  if (!Array.isArray(value) || value.length === 0 || !value.every(isName)) {
    throw invalidArgument("imageFolder", "classNames", "an array of names of folders", value);
  }
  const twice = value.find((name, i) => value.indexOf(name) < i);
  if (twice === undefined) return [...value];
  throw new LeatError(
    "invalid_argument",
    `imageFolder: classNames has ${show(twice)} twice; each class has one label`,
  );
}

function checkDecode(value: unknown): ImageDecodeOptions | false {
  if (value === undefined || value === false) return value ?? {};
  const allowed = [
    "crop",
    "resize",
    "flip",
    "channels",
    "dtype",
    "normalize",
    "layout",
    "dctMethod",
  ];
  if (!isPlainObject(value) || Object.keys(value).some((name) => !allowed.includes(name))) {
    throw invalidArgument("imageFolder", "decode", `false or { ${allowed.join(", ")} }`, value);
  }
  const { resize, channels = 3 } = value as ImageDecodeOptions;
  if (resize !== undefined && resize !== null) {
    checkInteger("imageFolder", "decode.resize.width", resize.width, 1);
    checkInteger("imageFolder", "decode.resize.height", resize.height, 1);
  }
  if (![1, 3, 4].includes(channels)) {
    throw invalidArgument("imageFolder", "decode.channels", "1, 3 or 4", channels);
  }
  return value as ImageDecodeOptions;
}

/** Returns the patterns of the images of all classes, or of the given classes. */
function patternsOf(root: string, classNames?: readonly string[]): string[] {
  const anyCase = (letter: string) => `[${letter}${letter.toUpperCase()}]`;
  const extensions = EXTENSIONS.map((extension) => extension.replace(/./g, anyCase)).join(",");
  const folder = root === "/" ? "" : escapeGlob(root);
  const classes = classNames?.map(escapeGlob) ?? ["*"];
  return classes.map((name) => `${folder}/${name}/**/*.{${extensions}}`);
}

/** Returns the class of a file: the name of the folder directly in `root` that contains it. */
function classOf(path: string, root: string): string {
  const start = root === "/" ? 1 : root.length + 1;
  return path.slice(start, path.indexOf("/", start));
}

function imageSpec(decode: ImageDecodeOptions | false): TensorSpec {
  if (decode === false) return new TensorSpec("bytes", []);
  const { width = null, height = null } = decode.resize ?? decode.crop ?? {};
  const { channels = 3, normalize, layout } = decode;
  const { dtype = normalize === undefined ? "uint8" : "float32" } = decode;
  const shape = layout === "CHW" ? [channels, height, width] : [height, width, channels];
  return new TensorSpec(dtype, shape);
}
