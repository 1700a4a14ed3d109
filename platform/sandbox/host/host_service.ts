/** Decodes images and reads object stores and services for a confined runner, which is untrusted. */
import type { FixedDType, TypedArray } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import { fieldsOf } from "../../../core/tree.ts";
import type { Host, ImageDecodeOptions, OpenFile } from "../../../data/host.ts";
import { HOST_READ_BYTES_MAX } from "../edge.ts";
import type { DecodedTensor, OpenedFile } from "./confined_host.ts";
import type { FarRoots } from "./far_roots.ts";
import type { HostReadings } from "./host_readings.ts";
import { notOpened, OpenedNumbers } from "./opened_numbers.ts";
import { isCount } from "../../../core/count.ts";

const OPEN_FILES_MAX = 1_024;
/** A URL up to its host, with a user or a password. */
const USER_OF_URL = /^([^/]*\/\/)[^/?#]*@/;

type HostMethod =
  | "decode"
  | "open"
  | "list"
  | "read"
  | "expect"
  | "close"
  | "serviceRead"
  | "serviceNext"
  | "serviceStop"
  | "serviceDataset";

/** Answers the requests of one runner. */
export class HostService {
  readonly #host: Host;
  readonly #roots: FarRoots;
  readonly #readings: HostReadings;
  readonly #files = new Map<number, OpenFile>();
  readonly #numbers = new OpenedNumbers();
  #opening = 0;

  /** Far files may be read only below `roots`. `host` must refuse redirects that lead elsewhere. */
  constructor(host: Host, roots: FarRoots, readings: HostReadings) {
    this.#host = host;
    this.#readings = readings;
    this.#roots = roots;
  }

  /** Answers a request with the name of a method and its arguments. */
  answer(request: unknown): unknown {
    const { method, args } = fieldsOf(request);
    const methods: Record<string, (args: unknown) => unknown> = this.methods();
    if (typeof method !== "string" || !Object.hasOwn(methods, method)) throw malformed("method");
    return methods[method]!(args);
  }

  methods(): Record<HostMethod, (args: unknown) => unknown> {
    const readings = this.#readings;
    return {
      decode: (request) => this.#decode(request),
      open: (request) => this.#open(request),
      list: (pattern) => this.#list(pattern),
      read: (request) => this.#read(request),
      expect: (request) => this.#expect(request),
      close: (file) => this.#close(file),
      serviceRead: (request) => readings.read(request),
      serviceNext: (reading) => readings.next(reading),
      serviceStop: (reading) => readings.stop(reading),
      serviceDataset: (request) => readings.dataset(request),
    };
  }

  async #decode(request: unknown): Promise<DecodedTensor> {
    const { bytes, options } = fieldsOf(request);
    if (!(bytes instanceof Uint8Array)) throw malformed("decode");
    // The codec checks the options.
    const image = await this.#host.images.decode(bytes, options as ImageDecodeOptions);
    const { buffer, byteOffset, byteLength } = image.data as TypedArray;
    const data = new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength);
    return { dtype: image.dtype as FixedDType, shape: [...image.shape], data };
  }

  async #open(request: unknown): Promise<OpenedFile> {
    const { path, firstBytes } = fieldsOf(request);
    this.#requireGranted(path);
    const isCountOfBytes = firstBytes === undefined || isCount(firstBytes) && firstBytes > 0;
    if (!isCountOfBytes) throw malformed("open");
    if (this.#files.size + this.#opening >= OPEN_FILES_MAX) {
      throw new LeatError(
        "resource_exhausted",
        `A task can keep at most ${OPEN_FILES_MAX} files of object stores open (OPEN_FILES_MAX)`,
      );
    }
    this.#opening++;
    try {
      const opened = await this.#host.files.open(path, undefined, firstBytes);
      const file = this.#numbers.next();
      this.#files.set(file, opened);
      return { file, sizeBytes: opened.sizeBytes, tag: opened.tag };
    } finally {
      this.#opening--;
    }
  }

  async #list(pattern: unknown): Promise<string[]> {
    this.#requireGranted(pattern);
    const paths = await this.#host.files.list(pattern);
    for (const path of paths) this.#requireGranted(path);
    return paths;
  }

  async #read(request: unknown): Promise<Uint8Array> {
    const { file, offset, bytesMax } = fieldsOf(request);
    if (!isCount(file) || !isCount(offset) || !isCount(bytesMax)) throw malformed("read");
    const opened = this.#files.get(file);
    if (opened === undefined) throw notOpened("opened this file");
    const into = new Uint8Array(Math.min(bytesMax, HOST_READ_BYTES_MAX, opened.sizeBytes));
    const count = await opened.read(into, offset);
    return into.subarray(0, count);
  }

  #expect(request: unknown): null {
    const { file, start, stop } = fieldsOf(request);
    if (!isCount(file) || !isCount(start) || !isCount(stop)) throw malformed("expect");
    this.#files.get(file)?.expect?.(start, stop);
    return null;
  }

  #close(file: unknown): null {
    if (typeof file !== "number") throw malformed("close");
    this.#files.get(file)?.close();
    this.#files.delete(file);
    return null;
  }

  #requireGranted(path: unknown): asserts path is string {
    if (typeof path !== "string") throw malformed("path");
    if (this.#roots.has(path)) return;
    if (this.#roots.has(path.replace(USER_OF_URL, "$1"))) {
      throw new LeatError(
        "permission_denied",
        `The URL of ${
          shownPath(path)
        } has a user or a password, and this worker grants its folder ` +
          "only to URLs without them: leave them out",
      );
    }
    throw new LeatError("permission_denied", `Requires read access to "${shownPath(path)}"`);
  }
}

function malformed(what: string): LeatError {
  return new LeatError("invalid_argument", `This is no request to a host: ${what}`);
}
