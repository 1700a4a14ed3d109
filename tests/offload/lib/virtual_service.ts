/** A service and a host in virtual time, for tests of the conditional operator. */
import type { Feed } from "../../../actors/client/feed.ts";
import { DenoHost } from "../../../mod.ts";
import type { OpenRemote } from "../../../offload/conditional/remote_side.ts";
import { encodeMessage } from "../../../transport/codec.ts";
import { Payload } from "../../../transport/payload.ts";

/** Gives the elements of a range at once, `perSplit` of each split. */
export class VirtualService {
  isUp = true;
  readers = 0;
  readonly #perSplit: number;
  readonly #servedFirst: number;

  /** @param servedFirst After so many splits of its first reader, the service fails. */
  constructor(perSplit: number, servedFirst = Infinity) {
    this.#perSplit = perSplit;
    this.#servedFirst = servedFirst;
  }

  readonly open: OpenRemote = (sequences, feed) => {
    const isFirst = this.readers++ === 0;
    const served = this.isUp ? sequences.slice(0, isFirst ? this.#servedFirst : Infinity) : [];
    for (const sequence of served) this.#give(sequence, feed);
    if (isFirst && this.#servedFirst < Infinity) this.isUp = false;
    // As if all that is taken arrived just before.
    const givenBytes = feed.bytes;
    feed.stats = () => ({ bytes: givenBytes - feed.bytes, bufferedBytes: 0, reads: [] }) as never;
    return () => {};
  };

  #give(sequence: number, feed: Feed): void {
    const perSplit = this.#perSplit;
    for (let index = 0; index < perSplit; index++) {
      const element = new Payload(encodeMessage(perSplit * sequence + index));
      feed.push({ kind: "element", element, place: { sequence, split: sequence, index } });
    }
    feed.push({ kind: "split_end", place: { sequence, split: sequence, index: perSplit } });
  }
}

/** A host whose time passes where the test lets it, and where a lost service is waited for. */
export class VirtualHost extends DenoHost {
  time = 0;
  #yields = 0;
  readonly #service: VirtualService;

  constructor(service: VirtualService) {
    super();
    this.#service = service;
  }

  override nowMs(): number {
    return this.time;
  }

  override warn(): void {}

  override async sleep(ms: number): Promise<void> {
    if (this.#service.isUp) return await new Promise(() => {});
    const untilMs = this.time + ms;
    // Meanwhile the trainer prepares all that it may ahead, and yields before each element.
    for (let yields = -1; yields !== this.#yields && this.time < untilMs;) {
      yields = this.#yields;
      for (let i = 0; i < 10; i++) await super.yield();
    }
    this.time = Math.max(this.time, untilMs);
  }

  override async yield(): Promise<void> {
    this.#yields++;
    await super.yield();
  }
}
