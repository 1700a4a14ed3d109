/** Which roles may call which methods of an actor. */
import { LeatError } from "../../core/error.ts";
import type { AccessRole, Identity } from "./identity.ts";
import type { MethodOf } from "./protocol.ts";
import type { World } from "./world.ts";

/** The roles that may call each method; `admin` may call all. A missing one does not compile. */
export type Access<P> = { readonly [M in MethodOf<P>]: readonly Exclude<AccessRole, "admin">[] };

/** How often refusals are logged per name, in ms. */
const LOG_EVERY_MS = 10_000;
/** Names whose refusals are logged separately. */
const NAMES_MAX = 256;

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

/** Logs refused calls: for each name one line in {@linkcode LOG_EVERY_MS}. */
export class RefusalLog {
  readonly #world: World;
  readonly #names = new Map<string, { untilMs: number; count: number }>();

  constructor(world: World) {
    this.#world = world;
  }

  note({ name }: Identity, { message }: LeatError): void {
    const nowMs = this.#world.nowMs();
    const known = this.#names.get(name);
    if (known !== undefined && nowMs < known.untilMs) {
      known.count++;
      return;
    }
    const more = known === undefined || known.count === 0 ? {} : { more: known.count };
    this.#world.log("warn", `Refused: ${message}`, more);
    this.#names.delete(name);
    this.#names.set(name, { untilMs: nowMs + LOG_EVERY_MS, count: 0 });
    if (this.#names.size > NAMES_MAX) this.#names.delete(this.#names.keys().next().value!);
  }
}
