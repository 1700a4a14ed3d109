/** A port for a program that may restart. */
import { LeatError } from "../../core/error.ts";

/** Operating systems use higher ports for connections, and for programs that listen on port 0. */
const PORTS = { first: 20_000, count: 12_000 };
const TRIES = 1_000;

/**
 * Returns a free port that the operating system gives to no other program while this one restarts.
 * @param randomInt Returns an integer from 0 up to, but not including, its argument.
 * @throws LeatError `resource_exhausted` if none is found.
 */
export function keptPort(hostname: string, randomInt: (count: number) => number): number {
  for (let i = 0; i < TRIES; i++) {
    const port = PORTS.first + randomInt(PORTS.count);
    try {
      Deno.listen({ hostname, port }).close();
      return port;
    } catch (error) {
      if (!(error instanceof Deno.errors.AddrInUse)) throw error;
    }
  }
  const last = PORTS.first + PORTS.count - 1;
  throw new LeatError(
    "resource_exhausted",
    `No port from ${PORTS.first} to ${last} of ${hostname} is free: stop what uses them`,
  );
}
