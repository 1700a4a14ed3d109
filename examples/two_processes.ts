/**
 * A cluster of real processes: this program starts a dispatcher and a worker, each a process of its own, and trains
 * from them. All three prove to each other that they know one token.
 *
 *     deno run -P --allow-net=127.0.0.1 --allow-run=deno examples/two_processes.ts
 *
 * On several hosts `deno task dispatcher` and `deno task worker` replace the two (docs/cluster/).
 */
import { Dataset, type LeatError, serveDispatcher, serveWorker } from "../mod.ts";

const [role, ...given] = Deno.args;
if (role === "dispatcher") await runDispatcher(given[0]!);
else if (role === "worker") await runWorker(given[0]!, given[1]!);
else await train();

async function train(): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const tokenFile = `${folder}/token`;
    const token = crypto.getRandomValues(new Uint8Array(32)).toHex();
    await Deno.writeTextFile(tokenFile, token, { mode: 0o600 });
    await using dispatcher = await start("dispatcher", tokenFile);
    await using worker = await start("worker", tokenFile, dispatcher.address);
    console.log(`dispatcher: process ${dispatcher.pid}; worker: process ${worker.pid}`);

    const service = dispatcher.address;
    const squares = Dataset.range(10_000).map((x) => x * x).batch(500);
    let sum = 0;
    for await (const batch of squares.distribute({ service, token, processingMode: "DYNAMIC" })) {
      for (const x of batch.data as Float64Array) sum += x;
    }
    console.log(`the sum of 10000 squares is ${sum}`);

    const stranger = Array.fromAsync(squares.distribute({ service, token: "guessed" }));
    await stranger.catch(({ code }: LeatError) => console.log(`with another token: ${code}`));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function runDispatcher(tokenFile: string): Promise<void> {
  const token = await Deno.readTextFile(tokenFile);
  await using dispatcher = await serveDispatcher({ token, logLevel: "error" });
  console.log(dispatcher.address); // ws://127.0.0.1:PORT
  await Promise.race([dispatcher.failed, parentEnds()]);
}

async function runWorker(tokenFile: string, dispatcher: string): Promise<void> {
  const token = await Deno.readTextFile(tokenFile);
  await using worker = await serveWorker({ dispatcher, token, ownProcess: true });
  console.log(worker.address);
  await Promise.race([worker.failed, parentEnds()]);
}

/** Resolves when standard input ends, as it does when the parent ends, even by a crash. */
async function parentEnds(): Promise<void> {
  for await (const _bytes of Deno.stdin.readable);
}

/** Starts this program in a role; it prints its address. Disposing it ends the process. */
async function start(...args: string[]) {
  const flags = ["--no-prompt", "--allow-read", "--allow-net=127.0.0.1"];
  const process = new Deno.Command("deno", {
    args: ["run", ...flags, import.meta.filename!, ...args],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = process.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const { value = "" } = await reader.read();
  const end = async () => {
    await process.stdin.close();
    await reader.cancel();
    await process.status;
  };
  return { pid: process.pid, address: value.trim(), [Symbol.asyncDispose]: end };
}
