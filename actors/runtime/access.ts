/** Which roles may call which methods of an actor. */
import { LeatError } from "../../core/error.ts";
import type { AccessRole, Identity } from "./identity.ts";
import type { MethodOf } from "./protocol.ts";
import { RareLog } from "./rare_log.ts";
import type { World } from "./world.ts";

/** The roles that may call each method; `admin` may call all. A missing method does not compile. */
export type Access<P> = { readonly [M in MethodOf<P>]: readonly Exclude<AccessRole, "admin">[] };

/** Why a sender may not call a method; undefined if it may. Without a table only admins may. */
export function refusalBy(
  access: Readonly<Record<string, readonly AccessRole[]>> | undefined,
  method: string,
  { name, role }: Identity,
): LeatError | undefined {
  const roles = access !== undefined && Object.hasOwn(access, method) ? access[method]! : [];
  if (role === "admin" || roles.includes(role)) return undefined;
  return new LeatError(
    "permission_denied",
    `"${name}" has the role ${role}, and may not call ${method}: it is for ` +
      `${["admin", ...roles].join(", ")}. Use a token of such a role`,
    { details: { method, role } },
  );
}

/** Logs refused calls, with a limited rate per name. */
export class RefusalLog {
  readonly #log: RareLog;

  constructor(world: World) {
    this.#log = new RareLog(world);
  }

  note({ name }: Identity, { message }: LeatError): void {
    this.#log.note(name, `Refused: ${message}`);
  }
}
