/** The consumers that take no part in some rounds, as the dispatcher reports them. */
import type { RoundsNews } from "../../dispatcher/protocol_heartbeats.ts";

export class AbsentConsumers {
  #absent: RoundsNews["absent"] = [];

  /** Returns whether the consumers to wait for may have changed. */
  learn(absent: RoundsNews["absent"]): boolean {
    const isSame = JSON.stringify(absent) === JSON.stringify(this.#absent);
    this.#absent = absent;
    return !isSame;
  }

  /** The consumers that take no part in a round. */
  in(round: number): { absent?: number[] } {
    const absent = this.#absent.filter(({ beforeRound }) => (beforeRound ?? Infinity) > round)
      .map(({ consumerIndex }) => consumerIndex);
    return absent.length === 0 ? {} : { absent };
  }

  /**
   * Whether the job may still end before this round, for a consumer that begins at this or an
   * earlier one. `delivered` is the first round that the training loop has not received.
   */
  mayEndBefore(round: number, delivered: number): boolean {
    return this.#absent.some(({ beforeRound }) =>
      beforeRound !== null && delivered < beforeRound && beforeRound <= round
    );
  }
}
