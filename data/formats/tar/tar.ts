/** Reads tar archives in order: POSIX ustar and pax, and GNU's long names. */
import { Buffer } from "node:buffer";
import { Header } from "tar/header";
import { joined } from "../../../core/bytes.ts";
import { LeatError, type LeatErrorCode } from "../../../core/error.ts";
import { shownText } from "../../../core/shown_text.ts";
import { then } from "../../../core/then.ts";
import { definedFields } from "../../../core/tree.ts";
import { END } from "../../iterator.ts";
import { AGAIN } from "../../iterators/stepping.ts";
import type { ByteReader } from "../byte_reader.ts";
import { headerText, paxRecords } from "./pax_records.ts";

/** Maximum bytes of a member, because JavaScript cannot count further exactly. */
export const MEMBER_BYTES_MAX = Number.MAX_SAFE_INTEGER;

/** Maximum bytes of an extended header, which holds a name or pax records. */
export const EXTENDED_HEADER_BYTES_MAX = 1024 * 1024;

/** Maximum length of a member's name, because readers keep names in memory. Systems allow 4096 bytes. */
export const NAME_LENGTH_MAX = 64 * 1024;

const BLOCK_BYTES = 512;
/** The range of a header's checksum, which is the sum of the header's bytes with spaces in this range. */
const CHECKSUM = { start: 148, stop: 156 };
const SPACE = 0x20;
const NAME_BYTES = 100;
const MAGIC = { start: 257, stop: 265, text: "ustar\x0000" };
/** The folder of a name. Some writers end it at `stopShort`, with zeros up to there, and times follow. */
const PREFIX = { start: 345, stop: 500, stopShort: 475 };
const SLASH = Uint8Array.of(0x2f);

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
/** Headers that are ignored. They may come between an extended header and its member. */
const IGNORED_HEADERS: readonly string[] = ["GlobalExtendedHeader", "NextFileHasLongLinkpath"];
const PAX_HEADERS: readonly string[] = ["ExtendedHeader", "OldExtendedHeader"];

/** A regular file in an archive. */
export interface TarMember {
  readonly name: string;
  readonly sizeBytes: number;
  /** Offset of its first header in the archive. */
  readonly offset: number;
}

/** What extended headers say about the next member. */
interface Extension {
  readonly name?: string;
  readonly sizeBytes?: number;
}

type Found = TarMember | typeof AGAIN | typeof END;

/**
 * Finds the regular files of an archive. Folders, links and devices are skipped. An archive ends at a
 * block of zeros, or at the end of the file. An empty file is an empty archive.
 *
 * After an error the archive cannot be read further: `data_loss` for damage, `resource_exhausted`
 * beyond a limit, and `unimplemented` for sparse files. Messages name the file and the byte.
 */
export class TarReader {
  readonly #bytes: ByteReader;
  /** Offset of the next member's headers, or of the padding before them. */
  #offset: number;
  /** What the extended headers read so far say about the next member. */
  #extension: Extension | undefined;

  constructor(bytes: ByteReader) {
    this.#bytes = bytes;
    this.#offset = bytes.position;
  }

  /**
   * Offset from which another reader finds what `next()` will find. It is not beyond the end of the
   * file, so that the other reader also notices if padding is missing.
   */
  get offset(): number {
    return this.#offset;
  }

  get closed(): boolean {
    return this.#bytes.closed;
  }

  /**
   * Returns the next file, or `AGAIN` after it skipped something else. After a file the caller must
   * call `contents()` or `pass()` before the next `next()`.
   */
  next(): Found | Promise<Found> {
    const { position } = this.#bytes;
    const padding = (BLOCK_BYTES - position % BLOCK_BYTES) % BLOCK_BYTES;
    return then(padding === 0 ? 0 : this.#bytes.pass(padding), (passed) => {
      if (passed < padding) {
        this.#offset = this.#bytes.position;
        throw this.#truncated("within the last block of a member");
      }
      // Extended headers before the padding belong to the next member.
      if (this.#offset === position) this.#offset += padding;
      return then(this.#bytes.fill(BLOCK_BYTES), (available) => this.#header(available));
    });
  }

  /** Returns a copy of the contents of the member that `next()` found. */
  contents(member: TarMember): Uint8Array | Promise<Uint8Array> {
    const { sizeBytes } = member;
    if (sizeBytes > this.#bytes.remaining) throw this.#truncatedIn(member, this.#bytes.remaining);
    return then(this.#bytes.takeCopy(sizeBytes), (contents) => {
      this.#end(member, contents.length);
      return contents;
    });
  }

  /** Skips the contents of the member that `next()` found. */
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
    const name = nameIn(block);
    this.#bytes.skip(BLOCK_BYTES);
    return this.#member(header, name);
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
    // The block has 100 bytes of a long name: if they end in a slash, the library sees a folder.
    const long = definedFields({ path: this.#extension?.name });
    try {
      return new Header(Buffer.from(block.buffer, block.byteOffset, block.byteLength), 0, long);
    } catch (cause) {
      throw this.#damage(
        "resource_exhausted",
        `a header has a number above ${MEMBER_BYTES_MAX} (MEMBER_BYTES_MAX)`,
        cause,
      );
    }
  }

  #member({ type, size = 0 }: Header, ownName: string): Found | Promise<Found> {
    if (type === "SparseFile") throw this.#sparse();
    const isFile = FILES.includes(type);
    const { name = ownName, sizeBytes: claimed = size } = isFile ? this.#extension ?? {} : {};
    const sizeBytes = EMPTY.includes(type) ? 0 : claimed;
    this.#requireSize(sizeBytes);
    const member = { name, sizeBytes, offset: this.#offset };
    const isLongName = LONG_NAMES.includes(type);
    if (isLongName || PAX_HEADERS.includes(type)) return this.#extend(member, isLongName);
    const isIgnored = IGNORED_HEADERS.includes(type);
    if (!isIgnored) this.#extension = undefined;
    if (isFile) return member;
    return then(this.pass(member), () => {
      if (isIgnored) this.#offset = member.offset;
      return AGAIN;
    });
  }

  #requireSize(sizeBytes: number): void {
    if (sizeBytes >= 0 && sizeBytes <= MEMBER_BYTES_MAX) return;
    throw this.#damage(
      sizeBytes > 0 ? "resource_exhausted" : "data_loss",
      `a member claims ${sizeBytes} bytes; the limit is 0 to ${MEMBER_BYTES_MAX} (MEMBER_BYTES_MAX)`,
    );
  }

  /** Reads an extended header about the next member. */
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
      this.#extension = {
        ...this.#extension,
        ...(isLongName ? { name: headerText(untilZero(contents)) } : this.#paxExtension(contents)),
      };
      this.#requireName(this.#extension);
      return AGAIN;
    });
  }

  #requireName({ name = "" }: Extension): void {
    if (name.length <= NAME_LENGTH_MAX) return;
    throw this.#damage(
      "resource_exhausted",
      `a name has ${name.length} characters, more than ${NAME_LENGTH_MAX} (NAME_LENGTH_MAX)`,
    );
  }

  #paxExtension(contents: Uint8Array): Extension {
    const records = paxRecords(contents);
    if (records === undefined) {
      throw this.#damage("data_loss", "a pax header has a record that is not LENGTH KEY=VALUE");
    }
    if (records.keys().some((key) => key.startsWith("GNU.sparse."))) throw this.#sparse();
    // An empty value is none (POSIX).
    const name = records.get("path") || undefined, size = records.get("size") || undefined;
    if (size !== undefined && !/^-?\d+$/.test(size)) {
      throw this.#damage("data_loss", `the size in a pax header is ${shownText(size)}, no number`);
    }
    return definedFields({ name, sizeBytes: size === undefined ? undefined : Number(size) });
  }

  /** Ends a member. `count` is how many bytes of its contents the file had. */
  #end(member: TarMember, count: number): void {
    if (count < member.sizeBytes) throw this.#truncatedIn(member, count);
    this.#offset = this.#bytes.position;
  }

  #truncatedIn({ name, sizeBytes }: TarMember, count: number): LeatError {
    return this.#truncated(
      `${count} of ${sizeBytes} bytes into the contents of ${JSON.stringify(name)}`,
    );
  }

  #truncated(where: string): LeatError {
    return this.#damage("data_loss", `it is truncated: ${where}`);
  }

  #sparse(): LeatError {
    return this.#damage(
      "unimplemented",
      "sparse files are not supported; create the archive without --sparse",
    );
  }

  #damage(code: LeatErrorCode, what: string, cause?: unknown): LeatError {
    const { path, stream, remedy } = this.#bytes;
    const offset = this.#offset;
    return new LeatError(code, `Tar file ${path}, at byte ${offset}${stream}: ${what}.${remedy}`, {
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

/** The name in a header. The library replaces bytes that are not UTF-8, so that names become equal. */
function nameIn(block: Uint8Array): string {
  const name = untilZero(block.subarray(0, NAME_BYTES));
  const hasPrefix = headerText(block.subarray(MAGIC.start, MAGIC.stop)) === MAGIC.text;
  const { start, stop, stopShort } = PREFIX;
  const prefix = hasPrefix
    ? untilZero(block.subarray(start, block[stopShort] === 0 ? stopShort : stop))
    : new Uint8Array(0);
  return headerText(prefix.length === 0 ? name : joined([prefix, SLASH, name]));
}

function untilZero(bytes: Uint8Array): Uint8Array {
  const end = bytes.indexOf(0);
  return end < 0 ? bytes : bytes.subarray(0, end);
}
