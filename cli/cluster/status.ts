/** A dispatcher's state in one line. */
import type { DispatcherDescription } from "../../mod.ts";
import { shownText } from "../../core/shown_text.ts";
import { counted } from "../lib/counted.ts";

/** Renders the line: workers alive, unreachable nodes, jobs that clients read, or those that none reads. */
export function statusLine({ workers, jobs }: DispatcherDescription): string {
  const alive = workers.filter((worker) => worker.alive);
  const parts = [
    workers.length === 0
      ? "no workers yet"
      : `${alive.length} of ${counted(workers.length, "worker")} alive`,
  ];
  for (const { name, unreachable } of alive) {
    if (unreachable !== undefined) parts.push(`UNREACHABLE: ${name} (${unreachable})`);
  }
  const running = jobs.filter(({ iterations }) => iterations.some((one) => one.clients > 0));
  const clients = running.flatMap(({ iterations }) => iterations)
    .reduce((sum, iteration) => sum + iteration.clients, 0);
  if (jobs.length === 0) parts.push("no jobs");
  else if (running.length === 0) parts.push(`${counted(jobs.length, "job")} without clients`);
  else parts.push(`${counted(running.length, "job")} with ${counted(clients, "client")}`);
  // Names and reasons are untrusted.
  return shownText(parts.join(", "));
}
