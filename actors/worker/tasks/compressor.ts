/**
 * Decides whether a task's elements are compressed: as the dataset says, or with `"auto"` if it
 * pays. Compression makes sending faster, but producing and decoding slower. So it pays if sending
 * is by far the slowest step and the data shrinks. Clients report the cost of sending and
 * decompressing. Trials on parts of elements measure the cost of compressing, and how far the data
 * shrinks. Each trial without gain doubles the distance to the next.
 */
import type { ElementCompression } from "../../../data/service/reading_choices.ts";
import type { FrameCodec } from "../../../transport/compression.ts";
import type { BandwidthFigures, CompressionFigures } from "../protocol.ts";
import type { CompressionTrial, CompressionWish } from "../runner/runner.ts";
import { percentText } from "../../../data/amounts.ts";

/** What `"auto"` compresses with: several times faster than gzip in both directions, and smaller. */
const AUTO_CODEC: FrameCodec = "zstd";
/** Compression begins if elements come this many times faster… */
const GAIN_TO_BEGIN = 1.2;
/** …and continues while they come this many times faster. */
const GAIN_TO_GO_ON = 1.05;
/** Consecutive reports that must agree before anything changes. */
const REPORTS_TO_CHANGE = 2;
/** Training loops that wait for a smaller share of their time than this gain nothing. */
const WAITING_SHARE_MIN = 0.1;
/** Elements between two trials; doubles after each trial that did not start compression. */
const TRIAL_EVERY_MIN = 16;
const TRIAL_EVERY_MAX = 4_096;
/** Weight of a new trial in the mean. */
const NEWER = 0.3;
/** Assumed speed of a client that has not decompressed yet, in bytes per second. */
const UNPACKING_BYTES_PER_SECOND = 400e6;

/** What the task's pipeline has made so far, compression included. */
interface Making {
  readonly busyMs: number;
  readonly bytes: number;
}

export class Compressor {
  readonly #setting: ElementCompression;
  #active: FrameCodec | undefined;
  #reason: string;
  /** Compressed size and time in ms, per uncompressed byte; `#ratio` is undefined before the first trial. */
  #ratio: number | undefined;
  #msPerByte = 0;
  /** Consecutive reports in favour of a change, since the last change. */
  #votes = 0;
  #trialDue = false;
  #sinceTrial = 0;
  #trialEvery = TRIAL_EVERY_MIN;
  #bytes = 0;
  #compressedBytes = 0;
  #ms = 0;
  /** What was made up to the previous report, and the time per byte since, in ms. */
  #made: Making = { busyMs: 0, bytes: 0 };
  #makingMsPerByte = 0;

  constructor(setting: ElementCompression = "auto") {
    this.#setting = setting;
    this.#active = setting === "auto" || setting === "none" ? undefined : setting;
    this.#reason = setting === "auto"
      ? "no client reads over a network"
      : `the dataset says "${setting}"`;
  }

  /** The compression that the runner should use for the next element. Called once for each. */
  takeWish(): CompressionWish | undefined {
    if (this.#active !== undefined) return { codec: this.#active, isTrial: false };
    if (!this.#trialDue || ++this.#sinceTrial < this.#trialEvery && this.#ratio !== undefined) {
      return undefined;
    }
    this.#sinceTrial = 0;
    return { codec: AUTO_CODEC, isTrial: true };
  }

  get figures(): CompressionFigures {
    return {
      setting: this.#setting,
      active: this.#active ?? "none",
      reason: this.#reason,
      bytes: this.#bytes,
      compressedBytes: this.#compressedBytes,
      ms: this.#ms,
    };
  }

  /**
   * Notes an element and returns its uncompressed size in bytes. `wish` is what the element was made
   * with: the decision may have changed since.
   */
  noteArrival(
    frame: Uint8Array,
    trial: CompressionTrial | undefined,
    wish: CompressionWish | undefined,
  ): number {
    if (trial === undefined || wish === undefined) return frame.byteLength;
    const ratio = trial.compressedBytes / trial.bytes;
    const msPerByte = trial.ms / trial.bytes;
    const before = this.#ratio ?? ratio;
    this.#msPerByte = this.#ratio === undefined
      ? msPerByte
      : this.#msPerByte + NEWER * (msPerByte - this.#msPerByte);
    this.#ratio = before + NEWER * (ratio - before);
    this.#ms += trial.ms;
    if (wish.isTrial) {
      this.#trialEvery = Math.min(TRIAL_EVERY_MAX, 2 * this.#trialEvery);
      return frame.byteLength;
    }
    this.#bytes += trial.bytes;
    this.#compressedBytes += trial.compressedBytes;
    return trial.bytes;
  }

  /** Handles a client's report of how it reads. */
  noteReport(bandwidth: BandwidthFigures, making: Making): void {
    if (this.#setting !== "auto") return;
    this.#noteMaking(making);
    const verdict = this.#judge(bandwidth);
    const isActive = this.#active !== undefined;
    this.#trialDue = !isActive && verdict.needsTrial;
    if (verdict.pays === isActive) {
      this.#votes = 0;
      this.#reason = verdict.reason;
    } else if (++this.#votes >= REPORTS_TO_CHANGE) {
      this.#votes = 0;
      this.#active = verdict.pays ? AUTO_CODEC : undefined;
      this.#reason = verdict.reason;
      this.#trialEvery = TRIAL_EVERY_MIN;
    }
  }

  #noteMaking({ busyMs, bytes }: Making): void {
    const made = { busyMs: busyMs - this.#ms, bytes };
    const grown = made.bytes - this.#made.bytes;
    if (grown <= 0) return;
    this.#makingMsPerByte = Math.max(0, made.busyMs - this.#made.busyMs) / grown;
    this.#made = made;
  }

  #judge(bandwidth: BandwidthFigures): Verdict {
    const isActive = this.#active !== undefined;
    if (bandwidth.waitingShare < WAITING_SHARE_MIN) {
      // They may hardly wait because elements are compressed, so the decision stays as it is.
      return { pays: isActive, needsTrial: false, reason: "training loops hardly wait" };
    }
    const sendingMs = 1_000 / bandwidth.bytesPerSecond;
    const makingMs = this.#makingMsPerByte;
    const plainMs = Math.max(sendingMs, makingMs);
    if (sendingMs < makingMs * GAIN_TO_GO_ON) {
      return {
        pays: false,
        needsTrial: false,
        reason: `elements take longer to make than to send at ${
          perSecond(bandwidth.bytesPerSecond)
        }`,
      };
    }
    if (this.#ratio === undefined) {
      return { pays: false, needsTrial: true, reason: "it has not been tried" };
    }
    const unpackingMs = 1_000 / (bandwidth.unpackBytesPerSecond ?? UNPACKING_BYTES_PER_SECOND);
    const compressedMs = Math.max(
      sendingMs * this.#ratio,
      makingMs + this.#msPerByte,
      unpackingMs,
    );
    const gain = plainMs / compressedMs;
    const facts = `${percentText(this.#ratio)} of the bytes are left, at ${
      perSecond(bandwidth.bytesPerSecond)
    } over the network: ${gain.toFixed(2)} times as fast`;
    const pays = gain >= (isActive ? GAIN_TO_GO_ON : GAIN_TO_BEGIN);
    return { pays, needsTrial: !pays, reason: facts };
  }
}

interface Verdict {
  readonly pays: boolean;
  /** Whether more trials could change the decision. */
  readonly needsTrial: boolean;
  readonly reason: string;
}

function perSecond(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 10e6 ? 1 : 0)} MB/s`;
}
