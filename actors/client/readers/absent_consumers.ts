/** The consumers that take no part in some rounds, as the dispatcher reports them. */
import type { RoundsNews } from "../../dispatcher/protocol_heartbeats.ts";

export class AbsentConsumers {
  #absent: RoundsNews["absent"] = [];

  /** Returns whether the consumers to wait for may have changed. */
  update(absent: RoundsNews["absent"]): boolean {
    const isSame = JSON.stringify(absent) === JSON.stringify(this.#absent);
    this.#absent = absent;
    return !isSame;
  }

  /** The consumers that take no part in a round. */
  fieldsOf(round: number): { absent?: number[] } {
    const absent = this.#absent.filter(({ beforeRound }) => (beforeRound ?? Infinity) > round)
      .map(({ consumerIndex }) => consumerIndex);
    return absent.length === 0 ? {} : { absent };
  }

  /**
   * Whether the job may still end before `round`. A consumer that joined later takes part from its
   * `beforeRound` on. The job may end at that round, until this client's training loop has received
   * all rounds before it.
   * @param nextRound The first round that the training loop has not received.
   */
  mayEndBefore(round: number, nextRound: number): boolean {
    return this.#absent.some(({ beforeRound }) =>
      beforeRound !== null && nextRound < beforeRound && beforeRound <= round
    );
  }
}
