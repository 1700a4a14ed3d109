/**
 * Reads tar archives by WebDataset's convention: consecutive files whose names are equal up to the
 * first dot are the parts of one sample.
 */
import { LeatError } from "../../../core/error.ts";
import { then } from "../../../core/then.ts";
import { END } from "../../iterator.ts";
import { ReadingFailure } from "../../iterators/reading_failure.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import type { ByteReader } from "../byte_reader.ts";
import type { FormatReader } from "../format_reader.ts";
import { type DecodedExtension, PART_DECODERS, SAMPLE_KEY } from "./sample_parts.ts";
import { type TarMember, TarReader } from "./tar.ts";

export interface SampleOptions {
  /** The extensions of the parts that samples keep, and must have; `undefined` for all. */
  readonly extensions: ReadonlySet<string> | undefined;
  readonly decode: ReadonlySet<string>;
  /** Maximum bytes of one sample's parts together: contents, names and {@linkcode PART_BYTES}. */
  readonly sampleBytesMax: number;
}

export interface SamplePosition {
  /** Offset of the first header of the next sample. */
  readonly offset: number;
  readonly ended: boolean;
}

/** What a part takes in memory besides its contents and name, so that empty parts count too. */
const PART_BYTES = 512;

/** Names that WebDataset reserves: such files belong to no sample. */
const META_NAME = /^__[^/]*__(\/|$)/;

interface Sample {
  readonly key: string;
  readonly offset: number;
  readonly parts: Map<string, Uint8Array>;
  bytes: number;
  /** Why the sample is lost; its other parts are skipped. */
  failure: LeatError | undefined;
}

/**
 * Reads samples as `{ __key__, jpg: Uint8Array, json: …, … }`. The key is a file's path up to the
 * first dot after the last slash. The rest of the path, in lower case, names the part. One sample is
 * held in memory at a time.
 *
 * A sample is lost if it is too large, has two parts of one name, has a part that cannot be decoded,
 * or has some of the requested parts but not all. Damage ends the archive, and loses the sample whose
 * parts are being read.
 */
export class WebDatasetReader implements FormatReader {
  readonly #tar: TarReader;
  readonly #path: string;
  readonly #options: SampleOptions;
  #sample: Sample | undefined;
  /** The first part of the next sample, which ended the current one. */
  #held: TarMember | undefined;
  #ended: boolean;

  /** @param ended Whether the saved reader had already ended. */
  constructor(bytes: ByteReader, options: SampleOptions, ended = false) {
    this.#tar = new TarReader(bytes);
    this.#path = bytes.path;
    this.#options = options;
    this.#ended = ended;
  }

  get disposed(): boolean {
    return this.#tar.closed;
  }

  step(): unknown {
    if (this.#ended || this.disposed) return END;
    try {
      const held = this.#held;
      this.#held = undefined;
      const result = then(held ?? this.#tar.next(), (found) => this.#found(found));
      return result instanceof Promise ? result.catch((error) => this.#broken(error)) : result;
    } catch (error) {
      return this.#broken(error);
    }
  }

  save(): SamplePosition {
    const offset = this.#sample?.offset ?? this.#held?.offset ?? this.#tar.offset;
    return { offset, ended: this.#ended };
  }

  close(): void {
    this.#tar.close();
  }

  #found(found: TarMember | typeof AGAIN | typeof END): unknown {
    if (found === AGAIN) return AGAIN;
    if (this.disposed) return END;
    if (found === END) {
      this.#ended = true;
      return this.#finish() ?? END;
    }
    const name = splitName(found.name);
    if (name === undefined) return then(this.#tar.pass(found), () => AGAIN);
    if (this.#sample !== undefined && this.#sample.key !== name.key) {
      this.#held = found;
      return this.#finish() ?? AGAIN;
    }
    this.#sample ??= {
      key: name.key,
      offset: found.offset,
      parts: new Map(),
      bytes: 0,
      failure: undefined,
    };
    return this.#take(this.#sample, name.extension, found);
  }

  #take(sample: Sample, extension: string, member: TarMember): unknown {
    if (this.#wants(sample, extension, member)) {
      return then(this.#tar.contents(member), (contents) => {
        sample.parts.set(extension, contents);
        return AGAIN;
      });
    }
    return then(this.#tar.pass(member), () => AGAIN);
  }

  #wants(sample: Sample, extension: string, { name, sizeBytes }: TarMember): boolean {
    const { extensions, sampleBytesMax } = this.#options;
    if (sample.failure !== undefined || extensions?.has(extension) === false) return false;
    sample.bytes += sizeBytes + name.length + PART_BYTES;
    if (sample.bytes > sampleBytesMax) {
      const what =
        `has at least ${sample.bytes} bytes, more than ${sampleBytesMax} (sampleBytesMax)`;
      this.#fail(sample, "resource_exhausted", what);
    } else if (extension === SAMPLE_KEY || sample.parts.has(extension)) {
      this.#fail(sample, "data_loss", `has two parts ${JSON.stringify(extension)}`);
    }
    return sample.failure === undefined;
  }

  #fail(sample: Sample, code: "data_loss" | "resource_exhausted", what: string, cause?: unknown) {
    const { key, offset } = sample;
    sample.parts.clear();
    sample.failure = new LeatError(
      code,
      `Sample ${JSON.stringify(key)} of ${this.#path}, at byte ${offset}, ${what}.`,
      { cause, details: { path: this.#path, offset, key } },
    );
  }

  /**
   * Returns the complete sample; `undefined` if there is none, or it has no parts. Throws if the sample
   * is lost.
   */
  #finish(): Record<string, unknown> | undefined {
    const sample = this.#sample;
    this.#sample = undefined;
    if (sample === undefined) return undefined;
    this.#requireParts(sample);
    const element: [string, unknown][] = [[SAMPLE_KEY, sample.key]];
    for (const [extension, contents] of sample.parts) {
      try {
        element.push([extension, this.#decode(extension, contents)]);
      } catch (cause) {
        const what = `has a part ${JSON.stringify(extension)} that does not match its name: ` +
          LeatError.from(cause).message;
        this.#fail(sample, "data_loss", what, cause);
        break;
      }
    }
    if (sample.failure !== undefined) throw sample.failure;
    return element.length > 1 ? Object.fromEntries(element) : undefined;
  }

  /** Fails a sample without a part that the spec promises. */
  #requireParts(sample: Sample): void {
    if (sample.parts.size === 0) return;
    const { extensions = [] } = this.#options;
    const missing = [...extensions].filter((extension) => !sample.parts.has(extension));
    if (missing.length === 0) return;
    const what = `has no part ${missing.map((one) => JSON.stringify(one)).join(", ")}, which ` +
      "`extensions` requires; name extensions that every sample has, or leave `extensions` out";
    this.#fail(sample, "data_loss", what);
  }

  #decode(extension: string, contents: Uint8Array): unknown {
    const last = extension.slice(extension.lastIndexOf(".") + 1);
    return this.#options.decode.has(last)
      ? PART_DECODERS[last as DecodedExtension](contents)
      : contents;
  }

  /**
   * Throws the error. Reading continues after an error of a sample. Nothing is read after a
   * `ReadingFailure`, but the sample is not lost. Any other error ends the archive.
   */
  #broken(error: unknown): typeof END {
    if (this.disposed) return END;
    if (error instanceof ReadingFailure) throw error;
    // Only `#finish()` throws in these states.
    if (this.#held !== undefined || this.#ended) throw error;
    this.#ended = true;
    const sample = this.#sample;
    this.#sample = undefined;
    throw sample === undefined ? error : sample.failure ?? withLoss(error, sample.key);
  }
}

/** Returns the key and extension of a file; `undefined` for a file that belongs to no sample. */
function splitName(name: string): { key: string; extension: string } | undefined {
  const base = name.lastIndexOf("/") + 1;
  const dot = name.indexOf(".", base);
  if (dot <= base || META_NAME.test(name)) return undefined;
  return { key: name.slice(0, dot), extension: name.slice(dot + 1).toLowerCase() };
}

/** Adds the name of the lost sample to the archive's error. */
function withLoss(error: unknown, key: string): LeatError {
  const { code, message, details, cause } = LeatError.from(error);
  return new LeatError(code, `${message} This also lost sample ${JSON.stringify(key)}.`, {
    details: { ...details, key },
    cause,
  });
}
