/**
 * The host of a confined pipeline. For actions that the confined process may not perform, it sends
 * requests to the worker or, through the worker, to its host process (`host_program.ts`).
 */
import { type FixedDType, TYPED_ARRAYS } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import { shownPath } from "../../../core/shown_text.ts";
import { Tensor } from "../../../core/tensor.ts";
import { definedFields } from "../../../core/tree.ts";
import type { Files, ImageCodec, OpenFile } from "../../../data/host.ts";
import { UNTRUSTED_ENVELOPE_BYTES_MAX } from "../../../transport/process/link.ts";
import { Payload } from "../../../transport/payload.ts";
import { DenoHost } from "../../deno_host.ts";
import type { PythonPool } from "../../python/python_pool.ts";
import { Images, requireBytes } from "../../media/images.ts";
import { pathOfFileUrl, schemeOf } from "../../storage/files.ts";
import { workerFiles } from "../../storage/storage.ts";
import { ByteGate } from "../byte_gate.ts";
import { isDenial } from "../denials.ts";
import { CONFINED_ASK_BYTES_MAX, HOST_GONE, hostRequestTooLarge } from "../edge.ts";
import { isFar, isWithin } from "../grants.ts";
import { isNotFound } from "../modules/module_source.ts";
import type { RemoteModules } from "../modules/remote_modules.ts";

/**
 * Limit of the bytes of an encoded image, and of all that are decoded at once. The rest of a decode
 * request needs some space, too.
 */
const IMAGE_BYTES_MAX = CONFINED_ASK_BYTES_MAX - UNTRUSTED_ENVELOPE_BYTES_MAX;

/** Sends a request to the host process. */
export type AskHost = (method: string, args: unknown) => Promise<unknown>;

export class ConfinedHost extends DenoHost {
  readonly #modules: RemoteModules;

  /** @param readable Real paths of the folders that may be read. */
  constructor(
    ask: AskHost,
    askPython: (request: unknown) => Promise<unknown>,
    modules: RemoteModules,
    readable: readonly string[],
    storageLatencyMs: number,
  ) {
    const local = workerFiles({ storageLatencyMs });
    super({
      files: confinedFiles(ask, local, readable),
      images: confinedImages(ask),
      pythonPool: confinedPython(askPython),
    });
    this.#modules = modules;
  }

  override async importModule(url: string): Promise<Record<string, unknown>> {
    try {
      return await this.#modules.import(() => super.importModule(url));
    } catch (error) {
      // Deno wraps denied permissions and errors of a hook in a TypeError.
      const { message } = LeatError.from(error);
      if (isDenial(error)) throw new LeatError("permission_denied", message, { cause: error });
      if (isNotFound(error)) throw new LeatError("not_found", message, { cause: error });
      throw error;
    }
  }
}

/**
 * Reads local files in this process, with its own permissions, and far files through the host process.
 * Deno follows links, so the target of a local path is checked first. On Linux the kernel checks it, too.
 */
function confinedFiles(ask: AskHost, local: Files, readable: readonly string[]): Files {
  const requireWithin = async (path: string) => {
    const name = schemeOf(path) === "file" ? pathOfFileUrl(path) : path;
    // If the file is missing or forbidden, opening it later fails with a clearer error.
    const real = await Deno.realPath(name).catch(() => undefined);
    if (real === undefined || readable.some((root) => isWithin(real, root))) return;
    throw new LeatError(
      "permission_denied",
      `Requires read access to "${real}": a link in "${path}" leads there`,
    );
  };
  return {
    open: async (path, signal, firstBytes) => {
      if (!isFar(path)) {
        await requireWithin(path);
        return await local.open(path, signal);
      }
      const request = { path, ...definedFields({ firstBytes }) };
      const opening = ask("open", request).then((opened) =>
        new FarHostFile(ask, request, opened as OpenedFile)
      );
      return await unlessAborted(opening, signal, (file) => file.close());
    },
    list: async (pattern, signal) => {
      if (!isFar(pattern)) return await local.list(pattern, signal);
      return await unlessAborted(ask("list", pattern) as Promise<string[]>, signal);
    },
  };
}

/** Settles as `work` does, or rejects on an abort. `discard` gets a result that comes after the abort. */
function unlessAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  discard: (late: T) => void = () => {},
): Promise<T> {
  if (signal === undefined) return work;
  return new Promise((resolve, reject) => {
    const abort = () => {
      reject(
        new LeatError("cancelled", "Reading far storage was cancelled", { cause: signal.reason }),
      );
      work.then(discard, () => {});
    };
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

/** What `Files.open` takes. */
interface OpenRequest {
  readonly path: string;
  readonly firstBytes?: number;
}

export interface OpenedFile {
  readonly file: number;
  readonly sizeBytes: number;
  readonly tag?: string | undefined;
}

/** How often a read is tried if the host process dies each time. */
const READS_MAX = 3;

/**
 * A far file that the host process has open. That process may die of another request, such as an image
 * that its decoder cannot bear. Then the next one opens the file again, if the storage says that its
 * contents are the same.
 */
class FarHostFile implements OpenFile {
  readonly sizeBytes: number;
  readonly tag: string | undefined;
  readonly #ask: AskHost;
  readonly #request: OpenRequest;
  /** See `expect()`. A process that opens the file again is told, too. */
  readonly #expected: { readonly start: number; readonly stop: number }[] = [];
  /** The number of the file in the host process. */
  #file: number;
  /** Whether the process that has it open as `#file` has ended. */
  #isGone = false;
  #reopening: Promise<void> | undefined;
  #isClosed = false;

  constructor(ask: AskHost, request: OpenRequest, { file, sizeBytes, tag }: OpenedFile) {
    this.#ask = ask;
    this.#request = request;
    this.#file = file;
    this.sizeBytes = sizeBytes;
    this.tag = tag;
  }

  async read(into: Uint8Array, offset: number): Promise<number> {
    for (let tries = 1;; tries++) {
      try {
        if (this.#isGone) await this.#openAgain();
        return await this.#read(into, offset);
      } catch (error) {
        const mayReopen = isOfGoneHost(error) && !this.#isClosed && this.tag !== undefined;
        if (!mayReopen || tries === READS_MAX) throw error;
      }
    }
  }

  expect(start: number, stop: number): void {
    const expected = { start, stop };
    this.#expected.push(expected);
    if (!this.#isGone) this.#tellExpected(expected);
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeFile(this.#file);
  }

  async #read(into: Uint8Array, offset: number): Promise<number> {
    const file = this.#file;
    try {
      const request = { file, offset, bytesMax: into.byteLength };
      const bytes = await this.#ask("read", request) as Uint8Array;
      into.set(bytes);
      return bytes.byteLength;
    } catch (error) {
      // Another read may have opened it again.
      if (isOfGoneHost(error) && file === this.#file) this.#isGone = true;
      throw error;
    }
  }

  /** Opens the file once, however many reads wait for that. */
  #openAgain(): Promise<void> {
    return this.#reopening ??= this.#reopen().finally(() => this.#reopening = undefined);
  }

  async #reopen(): Promise<void> {
    const { file, sizeBytes, tag } = await this.#ask("open", this.#request) as OpenedFile;
    const isSame = sizeBytes === this.sizeBytes && tag === this.tag;
    if (isSame && !this.#isClosed) {
      this.#file = file;
      this.#isGone = false;
      for (const expected of this.#expected) this.#tellExpected(expected);
      return;
    }
    this.#closeFile(file);
    const path = shownPath(this.#request.path);
    if (isSame) throw new LeatError("failed_precondition", `${path} was closed`);
    throw new LeatError(
      "failed_precondition",
      `Cannot read ${path} further: the process that read it has ended, and the ` +
        `file has changed since it was opened (${this.sizeBytes} bytes, ${this.tag}; now ` +
        `${sizeBytes} bytes, ${tag}). Read it again from its beginning, and give new contents new names`,
    );
  }

  /** Without an answer, which does not matter, the file is only read in other ranges. */
  #tellExpected(expected: { readonly start: number; readonly stop: number }): void {
    this.#ask("expect", { file: this.#file, ...expected }).catch(() => {});
  }

  #closeFile(file: number): void {
    this.#ask("close", file).catch(() => {}); // the edge may be closed, and its files with it
  }
}

function isOfGoneHost(error: unknown): boolean {
  return LeatError.from(error).details?.["reason"] === HOST_GONE;
}

/** Asks the worker to call Python functions. It calls only those that its operator has granted. */
function confinedPython(ask: (request: unknown) => Promise<unknown>): PythonPool {
  return {
    bytesMax: CONFINED_ASK_BYTES_MAX - UNTRUSTED_ENVELOPE_BYTES_MAX,
    run: async ({ calls, ...callee }) =>
      await ask({ ...callee, calls: new Payload(calls) }) as Uint8Array,
    close: () => {}, // the process ends with its pipeline
  };
}

/** Decodes images in the host process, because decoders are native code. */
function confinedImages(ask: AskHost): ImageCodec {
  const local = new Images();
  // The worker refuses what exceeds its limit, so more images than that wait here.
  const gate = new ByteGate(IMAGE_BYTES_MAX);
  return {
    decode: async (bytes, options = {}) => {
      requireBytes("image.decode", bytes);
      if (bytes.byteLength > IMAGE_BYTES_MAX) {
        throw hostRequestTooLarge(`an image of ${bytes.byteLength} bytes`);
      }
      const decoded = gate.run(bytes.byteLength, () => ask("decode", { bytes, options }));
      const { dtype, shape, data } = await decoded as DecodedTensor;
      const { buffer, byteOffset } = data.byteOffset % 8 === 0 ? data : data.slice();
      const length = shape.reduce((size, length) => size * length, 1);
      return new Tensor<FixedDType>(
        dtype,
        shape,
        new TYPED_ARRAYS[dtype](buffer, byteOffset, length),
      );
    },
    size: (bytes) => local.size(bytes),
  };
}

export interface DecodedTensor {
  readonly dtype: FixedDType;
  readonly shape: number[];
  readonly data: Uint8Array;
}
