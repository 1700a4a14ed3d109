/** Errors for the end of a runner's process. */
import { LeatError, type LeatErrorCode } from "../../core/error.ts";

/** The error of a runner whose process has ended, or had to be ended. */
export function runnerGone(code: LeatErrorCode, why: string, cause?: LeatError): LeatError {
  return new LeatError(code, `The runner is gone: ${why}`, {
    details: { reason: "runner_died" },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** What a process has printed, without the stack of an error: it names files of this machine. */
export function withoutStack(said: string): string {
  return said.replace(/\n\s+at [^]*$/, "").replace(/\bfile:\/\/\S+/g, "…").trim();
}
