/** Why a server cannot listen. */
import { LeatError } from "../../core/error.ts";
import { bracketed } from "../connectors.ts";
import { certificateRemedy } from "./remedies.ts";

/** The error of a listener that was not opened, with what to do. */
export function cannotListen(cause: unknown, hostname: string, port: number): LeatError {
  const where = `port ${port} of ${hostname}`;
  const name = cause instanceof Error ? cause.name : "";
  const why = cause instanceof Error ? cause.message : String(cause);
  switch (name) {
    case "AddrInUse":
      return new LeatError(
        "already_exists",
        `Cannot listen on ${where}: it is in use; stop what uses it, or take another port (0 takes a free one)`,
        { cause },
      );
    case "NotCapable":
    case "PermissionDenied":
      return new LeatError(
        "permission_denied",
        `Cannot listen on ${where}: ${why}; grant --allow-net=${
          bracketed(hostname)
        }:${port}, or take a port from 1024 on`,
        { cause },
      );
    default: {
      const remedy = certificateRemedy(why);
      if (remedy !== undefined || name === "InvalidData") {
        return new LeatError(
          "invalid_argument",
          `Cannot use the certificate or its key (--cert, --key): ${why}` +
            (remedy === undefined ? "" : `; ${remedy}`),
          { cause },
        );
      }
      return new LeatError(
        "unavailable",
        `Cannot listen on ${where}: ${why}; listen on an address of this machine, or on 0.0.0.0`,
        { cause },
      );
    }
  }
}
