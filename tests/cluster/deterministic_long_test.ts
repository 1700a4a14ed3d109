/**
 * DETERMINISTIC jobs over real processes that are killed: the stream is the same each time. For
 * more runs: `deno task chaos --kills 200 --faults kill --modes DETERMINISTIC`.
 */
import { assert, assertEquals } from "../assert.ts";
import { startChild } from "../lib/child.ts";
import { soon } from "./lib.ts";

const FLAGS = ["-P=cluster"];

Deno.test("ten SIGKILLs of workers and dispatcher in one DETERMINISTIC job leave its hash as it was, and its reader within its window", async () => {
  await using child = startChild("cli/chaos.ts", {
    args: [
      ...["--kills", "10", "--faults", "kill", "--modes", "DETERMINISTIC", "--seed", "5"],
      ...["--workers", "2"],
      ...["--between-ms", "500", "--down-ms", "300", "--elements", "4000", "--work", "50000"],
    ],
    flags: FLAGS,
    stopTimeoutMs: 20_000,
  });
  const { code } = await soon("the program's end", child.status);
  const said = `${child.stdout.text}\n${child.stderr.text}`;
  assertEquals(code, 0, said);
  const line = (pattern: RegExp) => pattern.exec(child.stdout.text)?.slice(1) ?? fail(said);
  line(/^DETERMINISTIC run 1: 10 faults, .*\(same\)$/m);
  const [kills, workers, dispatchers] = line(
    /^kills +(\d+) \((\d+) workers?, (\d+) dispatchers?\)/m,
  );
  assertEquals(kills, "10");
  assert(Number(workers) > 0 && Number(dispatchers) > 0, said);
  line(/^runs +DETERMINISTIC 1$/m);
  // The worker with most kills may have produced next to nothing: a start takes long on a slow
  // machine.
  const shares = line(/^shares +(.*)$/m)[0]!.split(", ");
  assert(shares.length > 0 && shares.length <= 2, said);
  for (
    const what of [
      /^reader held +at most (\d+) bytes \(limit (\d+)\)$/m,
      /^splits open +at most (\d+) \(limit (\d+)\)$/m,
    ]
  ) {
    const [most, limit] = line(what);
    assert(Number(most) > 0 && Number(most) <= Number(limit), said);
  }
  line(/^promises +(kept)$/m);
});

function fail(message: string): never {
  throw new Error(message);
}
