/**
 * Tar archives, read in order: POSIX ustar and pax, and GNU's long names.
 */

import { Buffer } from "node:buffer";
import { Header } from "tar/header";
import { Pax } from "tar/pax";
import { LeatError, type LeatErrorCode } from "../../core/error.ts";
import { END } from "../iterator.ts";
import { AGAIN } from "../stepping.ts";
import { type ByteReader, READ_BYTES } from "./byte_reader.ts";

/** Largest number that a header may hold. */
export const MEMBER_BYTES_MAX = Number.MAX_SAFE_INTEGER;

/** Longest header that extends another: a name, or pax records. */
export const EXTENDED_HEADER_BYTES_MAX = 1024 * 1024;

const BLOCK_BYTES = 512;
/** Where the checksum stands in a header; it is the sum of the header's bytes, with spaces in its own place. */
const CHECKSUM = { start: 148, stop: 156 };
const SPACE = 0x20;

const FILES: readonly string[] = ["File", "OldFile", "ContiguousFile"];
/** Members without contents, whatever size their header says (POSIX). */
const EMPTY: readonly string[] = [
  "Link",
  "SymbolicLink",
  "CharacterDevice",
  "BlockDevice",
  "Directory",
  "FIFO",
];
const LONG_NAMES: readonly string[] = ["NextFileHasLongPath", "OldGnuLongPath"];
/** Headers that stand between another and its member, and say nothing that is needed. */
const BESIDES: readonly string[] = ["GlobalExtendedHeader", "NextFileHasLongLinkpath"];
const PAX_HEADERS: readonly string[] = ["ExtendedHeader", "OldExtendedHeader"];

/** A regular file in an archive. */
export interface TarMember {
  readonly name: string;
  readonly sizeBytes: number;
  /** Where its first header begins. */
  readonly offset: number;
}

/** What headers before a member's own say of it. */
interface Extension {
  readonly name?: string;
  readonly sizeBytes?: number;
}

type Found = TarMember | typeof AGAIN | typeof END;

/**
 * Finds the regular files of an archive. Folders, links and devices are passed over. A block of zeros ends an archive, as does the end
 * of the file behind a member: an empty file is an empty archive.
 *
 * What it throws ends the archive: `data_loss` for damage, `resource_exhausted` beyond a limit, and `unimplemented` for sparse files;
 * messages name the file and the byte.
 */
export class TarReader {
  readonly #bytes: ByteReader;
  /** Where the headers of the next member begin. */
  #offset: number;
  /** What was read of the next member already. */
  #extension: Extension | undefined;
  /** Bytes that fill the last block of the member before. */
  #padding = 0;

  constructor(bytes: ByteReader) {
    this.#bytes = bytes;
    this.#offset = bytes.position;
  }

  /** Where the headers of the member begin that `next()` will find. */
  get offset(): number {
    return this.#offset;
  }

  get closed(): boolean {
    return this.#bytes.closed;
  }

  /**
   * The next file; `AGAIN` where something else was passed over. The caller takes its contents, or passes over them, before it asks for
   * the next.
   */
  next(): Found | Promise<Found> {
    const padding = this.#padding;
    this.#padding = 0;
    return then(padding === 0 ? 0 : this.#bytes.pass(padding), (passed) => {
      if (passed < padding) {
        this.#offset = this.#bytes.position;
        throw this.#truncated("within the last block of a member");
      }
      return then(this.#bytes.fill(BLOCK_BYTES), (available) => this.#header(available));
    });
  }

  /** The contents of the member that `next()` found, as bytes of their own. */
  contents(member: TarMember): Uint8Array | Promise<Uint8Array> {
    const { sizeBytes } = member;
    if (sizeBytes > this.#bytes.remaining) throw this.#cut(member, this.#bytes.remaining);
    if (sizeBytes > READ_BYTES) {
      const contents = new Uint8Array(sizeBytes);
      return then(this.#bytes.takeInto(contents), (count) => {
        this.#end(member, count);
        return contents;
      });
    }
    return then(this.#bytes.fill(sizeBytes), (available) => {
      if (available < sizeBytes) throw this.#cut(member, available);
      const contents = this.#bytes.take(sizeBytes);
      this.#end(member, sizeBytes);
      return contents;
    });
  }

  /** Steps over the contents of the member that `next()` found. */
  pass(member: TarMember): void | Promise<void> {
    return then(this.#bytes.pass(member.sizeBytes), (count) => this.#end(member, count));
  }

  close(): void {
    this.#bytes.close();
  }

  #header(available: number): Found | Promise<Found> {
    const { buffer, start } = this.#bytes;
    const block = buffer.subarray(start, start + Math.min(available, BLOCK_BYTES));
    if (this.closed) return END;
    if (block.every((byte) => byte === 0)) {
      if (this.#extension !== undefined) throw this.#truncated("its last header has no member");
      return END;
    }
    if (available < BLOCK_BYTES) throw this.#truncated(`${available} bytes into a header`);
    const header = this.#decode(block);
    this.#bytes.skip(BLOCK_BYTES);
    return this.#member(header);
  }

  #decode(block: Uint8Array): Header {
    const stored = parseInt(
      String.fromCharCode(...block.subarray(CHECKSUM.start, CHECKSUM.stop)),
      8,
    );
    const computed = checksumOf(block);
    if (stored !== computed) {
      throw this.#damage(
        "data_loss",
        `the checksum of a header is stored as ${stored} but comes to ${computed}`,
      );
    }
    try {
      return new Header(Buffer.from(block.buffer, block.byteOffset, block.byteLength));
    } catch (cause) {
      throw this.#damage(
        "resource_exhausted",
        `a header claims more than ${MEMBER_BYTES_MAX} (MEMBER_BYTES_MAX)`,
        cause,
      );
    }
  }

  #member({ type, path = "", size = 0 }: Header): Found | Promise<Found> {
    if (type === "SparseFile") throw this.#sparse();
    const isFile = FILES.includes(type);
    const { name = path, sizeBytes: ownSize = size } = isFile ? this.#extension ?? {} : {};
    const sizeBytes = EMPTY.includes(type) ? 0 : ownSize;
    this.#requireSize(sizeBytes);
    const member = { name, sizeBytes, offset: this.#offset };
    const isLongName = LONG_NAMES.includes(type);
    if (isLongName || PAX_HEADERS.includes(type)) return this.#extend(member, isLongName);
    const isBesides = BESIDES.includes(type);
    if (!isBesides) this.#extension = undefined;
    if (isFile) return member;
    return then(this.pass(member), () => {
      if (isBesides) this.#offset = member.offset;
      return AGAIN;
    });
  }

  #requireSize(sizeBytes: number): void {
    if (sizeBytes >= 0 && sizeBytes <= MEMBER_BYTES_MAX) return;
    throw this.#damage(
      sizeBytes > 0 ? "resource_exhausted" : "data_loss",
      `a member claims ${sizeBytes} bytes, and has from 0 to ${MEMBER_BYTES_MAX} (MEMBER_BYTES_MAX)`,
    );
  }

  /** Reads what a header says of the member behind it. */
  #extend(header: TarMember, isLongName: boolean): Found | Promise<Found> {
    if (header.sizeBytes > EXTENDED_HEADER_BYTES_MAX) {
      throw this.#damage(
        "resource_exhausted",
        `an extended header claims ${header.sizeBytes} bytes, more than ${EXTENDED_HEADER_BYTES_MAX} ` +
          `(EXTENDED_HEADER_BYTES_MAX)`,
      );
    }
    return then(this.contents(header), (contents) => {
      this.#offset = header.offset;
      const text = new TextDecoder().decode(contents);
      this.#extension = {
        ...this.#extension,
        ...(isLongName ? { name: text.replace(/\0[^]*/, "") } : this.#paxExtension(text)),
      };
      return AGAIN;
    });
  }

  #paxExtension(text: string): Extension {
    if (/^\d+ GNU\.sparse\./m.test(text)) throw this.#sparse();
    const { path, size } = Pax.parse(text);
    return {
      // A name of digits alone comes as a number.
      ...(path === undefined ? {} : { name: String(path) }),
      ...(size === undefined ? {} : { sizeBytes: Number(size) }),
    };
  }

  /** `count` bytes of a member's contents were there. */
  #end(member: TarMember, count: number): void {
    if (count < member.sizeBytes) throw this.#cut(member, count);
    this.#padding = (BLOCK_BYTES - member.sizeBytes % BLOCK_BYTES) % BLOCK_BYTES;
    this.#offset = this.#bytes.position + this.#padding;
  }

  #cut({ name, sizeBytes }: TarMember, count: number): LeatError {
    return this.#truncated(
      `${count} of ${sizeBytes} bytes into the contents of ${JSON.stringify(name)}`,
    );
  }

  #truncated(where: string): LeatError {
    return this.#damage("data_loss", `it is truncated: ${where}`);
  }

  #sparse(): LeatError {
    return this.#damage("unimplemented", "sparse files are not read; pack it without --sparse");
  }

  #damage(code: LeatErrorCode, what: string, cause?: unknown): LeatError {
    const { path, stream } = this.#bytes;
    const offset = this.#offset;
    return new LeatError(code, `Tar file ${path}, at byte ${offset}${stream}: ${what}.`, {
      details: { path, offset },
      cause,
    });
  }
}

function checksumOf(block: Uint8Array): number {
  return block.reduce(
    (sum, byte, at) => sum + (at >= CHECKSUM.start && at < CHECKSUM.stop ? SPACE : byte),
    0,
  );
}

/** `fn` of a value: at once where it is there. */
export function then<T, R>(
  value: T | Promise<T>,
  fn: (value: T) => R | Promise<R>,
): R | Promise<R> {
  return value instanceof Promise ? value.then(fn) : fn(value);
}
