/** Refuses calls by which a thread ends itself: its creator would not notice, and would wait forever. */
import { LeatError } from "../../core/error.ts";

/**
 * Makes `Deno.exit()`, `process.exit()` and `close()` of this thread throw instead of ending it.
 * @param messageOf Returns the error message for a call, such as `Deno.exit(3)`.
 * @param onExit Receives the error, too, because user code may catch it. If it is given, the error
 *   does not end the thread when it is uncaught.
 */
export function guardExits(
  messageOf: (call: string) => string,
  onExit?: (error: LeatError) => void,
): void {
  const reported = new Set<unknown>();
  const refuse = (name: string) => (code?: unknown): never => {
    const call = `${name}(${code === undefined ? "" : String(code)})`;
    const error = new LeatError("failed_precondition", messageOf(call));
    reported.add(error);
    onExit?.(error);
    throw error;
  };
  Object.assign(Deno, { exit: refuse("Deno.exit") });
  // `process.exit` calls `reallyExit`, also when imported by name. An import here would load more.
  const { process } = globalThis as unknown as { process: object };
  Object.assign(process, { reallyExit: refuse("process.exit") });
  Object.assign(globalThis, { close: refuse("close") });
  if (onExit === undefined) return;
  // An uncaught error would be reported a second time, as the end of the thread.
  addEventListener("error", (event) => {
    if (reported.has(event.error)) event.preventDefault();
  });
  addEventListener("unhandledrejection", (event) => {
    if (reported.has(event.reason)) event.preventDefault();
  });
}
