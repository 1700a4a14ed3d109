/** The live view of a cluster's job, on a clock that the test sets. */
import { JobView } from "../../cli/cluster/view.ts";
import { assertEquals } from "../assert.ts";

Deno.test("JobView shows no rate of two refreshes that end together", async () => {
  let nowMs = 0;
  const answers: PromiseWithResolvers<void>[] = [];
  const observer = {
    refresh: () => {
      answers.push(Promise.withResolvers());
      return answers.at(-1)!.promise;
    },
    splits: { handedOut: 0, total: 0 },
    workers: new Map(),
  };
  const lines: string[] = [];
  const status = { show: (line: string) => void lines.push(line), clear() {} };
  const ledger = { received: 0 };
  const view = new JobView(status, observer, ledger, () => nowMs);
  const refresh = () => {
    nowMs += 1000;
    ledger.received += 10;
    return view.refresh();
  };
  const slow = [refresh(), refresh()]; // a node answers late
  ledger.received += 5;
  for (const answer of answers) answer.resolve();
  await Promise.all(slow);
  const next = refresh();
  answers.at(-1)!.resolve();
  await next;
  view.end();
  assertEquals(lines, [
    "2.0 s  25 elements (13/s)  workers: none yet",
    "3.0 s  35 elements (10/s)  workers: none yet",
  ]);
});
