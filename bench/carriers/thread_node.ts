/**
 * The remote side of the benches of the thread carrier: an actor that increments numbers and produces
 * blocks.
 */
import type { ActorFactory } from "../../actors/runtime/actor.ts";
import type { NodeParts } from "../../transport/thread_control.ts";
import { Payload } from "../../transport/payload.ts";

/** The protocol of the actor. */
export interface Source {
  increment(value: number): number;
  /** Returns a block of this many bytes, whose first byte counts the blocks. */
  block(bytes: number): Payload;
}

export const createSource: ActorFactory<Source> = () => {
  let sent = 0;
  return {
    handlers: {
      increment: (value) => value + 1,
      block(byteLength) {
        const bytes = new Uint8Array(byteLength);
        bytes[0] = sent++ & 0xff;
        return new Payload(bytes);
      },
    },
  };
};

export function setup(): NodeParts {
  return {
    started: (system) => void system.spawn({ name: "source", create: createSource }),
  };
}
