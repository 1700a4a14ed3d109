/**
 * Records what happened between the nodes of a run, as a hash that shows whether two runs were equal,
 * and as readable lines.
 */
import { createHash, type Hash } from "node:crypto";
import type { Envelope } from "../../actors/runtime/envelope.ts";
import type { MessageCopy } from "./message_copy.ts";

/** Maximum number of lines kept. The oldest are dropped. */
const LINES_MAX = 20_000;
/**
 * Bytes buffered before they are hashed, because a call of the hash costs more than most envelopes. (A
 * larger buffer would take longer to allocate for every run, and many runs are short.)
 */
const CHUNK_BYTES = 1 << 13;
/** Bytes of an envelope's record before its content: time, link, fate, number and length. */
const RECORD_BYTES = 19;

/** What happened to an envelope. */
const FATES = [
  "sent",
  "lost",
  "cut",
  "overflow",
  "duplicated",
  "delivered",
  "dead",
] as const;

type Fate = typeof FATES[number];

const FATE_NUMBERS = Object.fromEntries(FATES.map((fate, i) => [fate, i])) as Record<Fate, number>;

/**
 * Records envelopes and marks. The hash covers times, links, fates and the bytes of every envelope. For
 * a copied envelope, it covers its mark and its length without the texts of errors. It covers nothing of
 * the machine, so a seed has one hash everywhere.
 */
export class Trace {
  readonly #hash: Hash = createHash("sha256");
  readonly #chunk = new Uint8Array(CHUNK_BYTES);
  readonly #view = new DataView(this.#chunk.buffer);
  readonly #links = new Map<string, number>();
  readonly #lines: string[] | undefined;
  #used = 0;
  #digest: string | undefined;

  /** @param options `readable`: whether to keep lines for {@linkcode Trace.lines}. Default false. */
  constructor(options: { readonly readable?: boolean } = {}) {
    this.#lines = options.readable === true ? [] : undefined;
  }

  /**
   * Records the fate of an envelope.
   * @param content The whole message. Omitted if the trace has recorded it before.
   */
  envelope(
    timeUs: number,
    link: string,
    fate: Fate,
    envelope: Envelope,
    content?: Uint8Array | MessageCopy,
  ): void {
    const linkId = this.#linkId(link);
    this.#reserve(RECORD_BYTES);
    this.#view.setFloat64(this.#used, timeUs);
    this.#view.setUint16(this.#used + 8, linkId);
    this.#view.setUint8(this.#used + 10, FATE_NUMBERS[fate]);
    this.#view.setUint32(this.#used + 11, envelope.number);
    const isEncoded = content instanceof Uint8Array;
    const length = isEncoded ? content.byteLength : content?.tracedLength;
    this.#view.setUint32(this.#used + 15, length ?? 0);
    this.#used += RECORD_BYTES;
    if (isEncoded) this.#write(content);
    else if (content !== undefined) this.#writeMark(content.mark);
    if (this.#lines !== undefined) this.#line(timeUs, `${link} ${fate} ${describe(envelope)}`);
  }

  /** Records an event of a node or a link. */
  mark(timeUs: number, what: string): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#used, timeUs);
    this.#used += 8;
    this.#writeText(what);
    if (this.#lines !== undefined) this.#line(timeUs, `*** ${what}`);
  }

  /** The hash of everything so far, in hexadecimal. Nothing can be recorded after it was read. */
  get hash(): string {
    if (this.#digest === undefined) {
      this.#flush();
      this.#digest = this.#hash.digest("hex");
    }
    return this.#digest;
  }

  /** The newest lines, oldest first; none unless `readable`. */
  get lines(): readonly string[] {
    return this.#lines?.slice(-LINES_MAX) ?? [];
  }

  #line(timeUs: number, text: string): void {
    const lines = this.#lines!;
    lines.push(`${(timeUs / 1_000).toFixed(3).padStart(12)} ms  ${text}`);
    if (lines.length >= 2 * LINES_MAX) lines.splice(0, LINES_MAX);
  }

  #linkId(link: string): number {
    const existing = this.#links.get(link);
    if (existing !== undefined) return existing;
    const id = this.#links.size;
    this.#links.set(link, id);
    // Writes the name once, so that runs between other nodes have another hash.
    this.#writeText(link);
    return id;
  }

  /** Writes UTF-16 units one by one, which for a few words is faster than an encoder. */
  #writeText(text: string): void {
    for (let i = 0; i < text.length; i++) {
      this.#reserve(2);
      this.#view.setUint16(this.#used, text.charCodeAt(i));
      this.#used += 2;
    }
  }

  #writeMark(mark: number): void {
    this.#reserve(4);
    this.#view.setInt32(this.#used, mark);
    this.#used += 4;
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length > CHUNK_BYTES) {
      this.#flush();
      this.#hash.update(bytes);
      return;
    }
    this.#reserve(bytes.length);
    this.#chunk.set(bytes, this.#used);
    this.#used += bytes.length;
  }

  #reserve(bytes: number): void {
    if (this.#used + bytes > CHUNK_BYTES) this.#flush();
  }

  #flush(): void {
    this.#hash.update(this.#chunk.subarray(0, this.#used));
    this.#used = 0;
  }
}

function describe(envelope: Envelope): string {
  const id = "id" in envelope ? `#${envelope.id} ` : "";
  const method = "method" in envelope ? `${envelope.method} ` : "";
  const body = "body" in envelope
    ? summary(envelope.body)
    : "error" in envelope
    ? `${envelope.error.code}: ${envelope.error.message}`
    : "";
  return `${envelope.kind} ${id}${method}${envelope.source.path} → ${envelope.target.path} ` +
    `(${envelope.number}) ${body}`;
}

/** Returns the beginning of a body as text, with the sizes of its byte arrays. */
function summary(body: unknown): string {
  const text = JSON.stringify(body, (_, value) => {
    if (ArrayBuffer.isView(value)) return `<${value.byteLength} bytes>`;
    return typeof value === "bigint" ? `${value}` : value;
  }) ?? "";
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
