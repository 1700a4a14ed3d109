/** The shapes of what workers answer when they prepare a job. The journal keeps much of it. */
import { LeatError } from "../../../core/error.ts";
import { count, list, name, object } from "../../runtime/checks.ts";
import { guardOf } from "../../runtime/guard.ts";
import type { WorkerProtocol } from "../../worker/protocol.ts";

/** Items of a list: as many splits as an iteration may have. */
const MANY = 2 ** 24;

const table = list(list(object({ start: count, stop: count }), MANY), MANY);

const ANSWERS = {
  listSplits: guardOf(object({ table })),
  beginSave: guardOf(object({
    ...{ id: name, table, entries: count, upTo: count, elements: count, sizeBytes: count },
    runs: list(object({ first: count, count, attempt: name }), MANY),
  })),
} satisfies { readonly [M in keyof WorkerProtocol]?: unknown };

/** @throws LeatError `invalid_argument` if no worker answers such a request so. */
export function checkPreparation(method: keyof WorkerProtocol, answer: unknown): void {
  if (!Object.hasOwn(ANSWERS, method) || ANSWERS[method as keyof typeof ANSWERS](answer)) return;
  throw new LeatError("invalid_argument", `The worker's answer to ${method} is malformed`);
}
