/**
 * A decompressor of libjpeg-turbo with its memory: it decodes one JPEG at a time.
 *
 * All memory that a call of the library uses is native. So the bytes may change or be transferred
 * meanwhile, and a thread may be ended while one of its calls still runs.
 */

import type { TypedArray } from "../../../core/dtype.ts";
import { LeatError } from "../../../core/error.ts";
import type { DecodePlan } from "../decode_plan.ts";
import type { Channels, Placing, Region } from "../image_format.ts";
import type { Inks } from "./cmyk.ts";
import { decodingThreads } from "./decoding_threads.ts";
import type { TurboLibrary } from "./turbo_library.ts";

/** Native buffers up to this size are kept between images. */
const KEPT_BYTES_MAX = 16 * 1024 * 1024;

/** Images of fewer pixels are decoded on the calling thread: a thread switch would take longer. */
const ASYNC_PIXELS_MIN = 16_384;
/**
 * With one core, images of at least this many pixels are decoded on another thread. This gains nothing,
 * but they would block the calling thread for long.
 */
const BLOCKING_PIXELS_MIN = 4_194_304;

const DECOMPRESS = 1;
/** Numbers of `enum TJPARAM`. */
const PARAMETER = {
  ...{ stopOnWarning: 0, width: 5, height: 6, fastDct: 10, scanLimit: 13 },
};
/** Numbers of `enum TJPF`. */
const PIXEL_FORMAT: Readonly<Record<Channels, number>> = { 1: 6, 3: 0, 4: 7 };
const PIXEL_FORMAT_CMYK = 11;
const CMYK_BYTES = 4;
/** How far chroma upsampling reaches, in pixels. */
const MARGIN = 2;

export interface DecodeRequest {
  /** The size that the header states. */
  readonly width: number;
  readonly height: number;
  /** The width of a block of coded units, by the header. */
  readonly blockWidth: number;
  /** The part of the image that is needed, and its transformation. */
  readonly plan: DecodePlan;
  /** How the inks of a JPEG of CMYK are stored; `undefined` for colours and grey. */
  readonly inks?: Inks | undefined;
  /** Provides the memory for the result. */
  readonly place?: Placing | undefined;
  /** The bytes of memory that the library itself needs. */
  readonly libraryBytes: number;
  /** Limit of the scans of a JPEG. */
  readonly scansMax: number;
}

/** What was decoded: the result of the plan, or the pixels of a part. */
export interface DecodedPart {
  readonly region: Region;
  readonly isTransformed: boolean;
  readonly placed?: TypedArray;
}

type DecompressArguments = Readonly<Parameters<TurboLibrary["decompressAsync"]>>;

export class TurboDecoder {
  readonly library: TurboLibrary;
  readonly #handle: bigint;
  readonly #file: NativeBuffer;
  readonly #pixels: NativeBuffer;
  readonly #result: NativeBuffer;
  readonly #cores: number;
  #isTransformed = false;

  constructor(library: TurboLibrary, cores: number = navigator.hardwareConcurrency) {
    this.library = library;
    this.#cores = cores;
    this.#handle = library.symbols.tj3Init(DECOMPRESS) || outOfMemory(0);
    this.#file = new NativeBuffer(library);
    this.#pixels = new NativeBuffer(library);
    this.#result = new NativeBuffer(library);
    library.symbols.tj3Set(this.#handle, PARAMETER.stopOnWarning, 1);
  }

  /** Decodes at least the wanted part, CMYK to its inks, and returns which part it is. Throws the library's error. */
  decode(bytes: Uint8Array, request: DecodeRequest): DecodedPart | Promise<DecodedPart> {
    const { plan, place } = request;
    const isCmyk = request.inks !== undefined;
    const file = this.#file.reserve(bytes.length);
    this.library.symbols.copyIn(file, bytes, BigInt(bytes.length));
    this.#readHeader(file, bytes.length, request);
    const region = this.#crop(request);
    const pixels = this.#pixels.reserve(
      region.width * region.height * (isCmyk ? CMYK_BYTES : plan.channels),
    );
    const format = isCmyk ? PIXEL_FORMAT_CMYK : PIXEL_FORMAT[plan.channels];
    const args = [this.#handle, file, BigInt(bytes.length), pixels, 0, format] as const;
    this.#isTransformed = false;
    const part = { region, isTransformed: plan.isPlain };
    if (request.width * request.height < ASYNC_PIXELS_MIN) {
      this.#check(this.library.symbols.tj3Decompress8(...args));
      return part;
    }
    // CMYK is rare, so its colours are made and transformed by the calling thread.
    return plan.isPlain || isCmyk
      ? this.#decodeAsync(args, part)
      : this.#transformAsync(args, region, plan, place);
  }

  /** Copies the first bytes of the last decoded image. */
  read(into: Uint8Array): void {
    const { address } = this.#isTransformed ? this.#result : this.#pixels;
    this.library.symbols.copyOut(into, address, BigInt(into.length));
  }

  /**
   * Throws `resource_exhausted` if no `byteLength` bytes more can be allocated. After a failure this
   * tells lack of memory from damage, which the library does not.
   */
  requireMemory(byteLength: number): void {
    const { symbols } = this.library;
    if (byteLength === 0) return; // allocating nothing may give no address
    symbols.tj3Free(symbols.tj3Alloc(BigInt(byteLength)) || outOfMemory(byteLength));
  }

  /** Frees buffers that are too large to keep. */
  trim(): void {
    this.#file.trim();
    this.#pixels.trim();
    this.#result.trim();
  }

  free(): void {
    this.#file.free();
    this.#pixels.free();
    this.#result.free();
    this.library.symbols.tj3Destroy(this.#handle);
  }

  async #decodeAsync(args: DecompressArguments, part: DecodedPart): Promise<DecodedPart> {
    const { width, height } = part.region;
    if (this.#cores === 1 && width * height < BLOCKING_PIXELS_MIN) {
      await undefined; // so that the destination of the result is known, as below
      this.#check(this.library.symbols.tj3Decompress8(...args));
    } else {
      requireDecoded(await this.library.decompressAsync(...args));
    }
    return part;
  }

  /** Decodes and transforms on another thread; only decodes there if no such thread is free. */
  async #transformAsync(
    args: DecompressArguments,
    region: Region,
    plan: DecodePlan,
    place: Placing = () => undefined,
  ): Promise<DecodedPart> {
    const [handle, file, fileBytes, pixels, , pixelFormat] = args;
    // After a microtask the user's function has returned, and the result's destination is known.
    await undefined;
    const shared = sharedOf(place());
    const result = shared ?? this.#result.reserve(plan.resultBytes);
    const outcome = decodingThreads.decode({
      ...{ handle, file, fileBytes, pixels, pixelFormat, region, plan, result },
    });
    if (outcome === undefined) {
      return await this.#decodeAsync(args, { region, isTransformed: false });
    }
    requireDecoded(await outcome);
    if (shared !== undefined) return { region, isTransformed: true, placed: shared };
    this.#isTransformed = true;
    return { region, isTransformed: true };
  }

  #readHeader(
    file: bigint,
    byteLength: number,
    { width, height, scansMax, plan }: DecodeRequest,
  ): void {
    const { symbols } = this.library, handle = this.#handle;
    symbols.tj3Set(handle, PARAMETER.scanLimit, scansMax);
    symbols.tj3Set(handle, PARAMETER.fastDct, plan.dctMethod === "INTEGER_FAST" ? 1 : 0);
    symbols.tj3SetCroppingRegion(handle, rectangle(0, 0, 0, 0));
    this.#check(symbols.tj3DecompressHeader(handle, file, BigInt(byteLength)));
    const readWidth = symbols.tj3Get(handle, PARAMETER.width);
    const readHeight = symbols.tj3Get(handle, PARAMETER.height);
    if (readWidth === width && readHeight === height) return;
    throw new Error(`libjpeg-turbo reads a size of ${readWidth} × ${readHeight} pixels`);
  }

  /**
   * Restricts the next call to the blocks around the wanted part, and returns their rectangle. With
   * the margin, the wanted pixels have the same values as in the decoded whole image.
   */
  #crop({ width, height, blockWidth: block, plan: { crop: wanted } }: DecodeRequest): Region {
    const whole = { x: 0, y: 0, width, height };
    const x = Math.max(0, Math.floor((wanted.x - MARGIN) / block)) * block;
    const right = Math.min(width, Math.ceil((wanted.x + wanted.width + MARGIN) / block) * block);
    const region = { x, y: wanted.y, width: right - x, height: wanted.height };
    if (region.width === width && region.height === height) return whole;
    const { y } = region;
    const cropping = rectangle(x, y, region.width, region.height);
    return this.library.symbols.tj3SetCroppingRegion(this.#handle, cropping) === 0 ? region : whole;
  }

  #check(status: number): void {
    if (status !== 0) throw this.library.errorOf(this.#handle);
  }
}

/** Checks the status that another thread has got. The library's error text is known only there. */
function requireDecoded(status: number): void {
  if (status !== 0) throw new Error("libjpeg-turbo refused the image on another thread");
}

function sharedOf(memory: TypedArray | undefined): TypedArray | undefined {
  return memory?.buffer instanceof SharedArrayBuffer ? memory : undefined;
}

/** Native memory for one purpose. */
class NativeBuffer {
  readonly #library: TurboLibrary;
  #byteLength = 0;
  /** 0 if nothing is allocated. */
  address = 0n;

  constructor(library: TurboLibrary) {
    this.#library = library;
  }

  /** Returns the address of at least `byteLength` bytes, with any contents. */
  reserve(byteLength: number): bigint {
    if (this.address !== 0n && byteLength <= this.#byteLength) return this.address;
    this.free();
    this.address = this.#library.symbols.tj3Alloc(BigInt(byteLength)) || outOfMemory(byteLength);
    this.#byteLength = byteLength;
    return this.address;
  }

  trim(): void {
    if (this.#byteLength > KEPT_BYTES_MAX) this.free();
  }

  free(): void {
    this.#library.symbols.tj3Free(this.address);
    this.address = 0n;
    this.#byteLength = 0;
  }
}

const corners = new Int32Array(4);
const cornerBytes = new Uint8Array(corners.buffer);

/** Reuses the same memory each time: the library only reads it during the call. */
function rectangle(x: number, y: number, width: number, height: number): Uint8Array<ArrayBuffer> {
  corners[0] = x;
  corners[1] = y;
  corners[2] = width;
  corners[3] = height;
  return cornerBytes;
}

function outOfMemory(byteLength: number): never {
  throw new LeatError(
    "resource_exhausted",
    `There is no memory to decode a JPEG: ${byteLength} bytes were asked for`,
  );
}
