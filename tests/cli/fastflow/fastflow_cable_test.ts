/** The cable to a network namespace, where this machine lets the tests make one. */
import { Cable } from "../../../cli/fastflow/cable.ts";
import { assertEquals, assertMatch } from "../../assert.ts";
import { startChild } from "../../lib/child.ts";
import { withFiles } from "../../lib/temp_folder.ts";
import { until } from "../../lib/until.ts";

/** Not the addresses of the experiments, which may run at the same time. */
const ENDS = { here: "10.97.9.1", there: "10.97.9.2", bytesPerSecond: 1_000_000 };

async function whyNot(): Promise<string | undefined> {
  try {
    await using _ = await Cable.start(ENDS);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

async function output(program: string, ...args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(program, { args }).output();
  return new TextDecoder().decode(stdout);
}

const reason = await whyNot();
if (reason !== undefined) console.log(`No cables here: ${reason}`);

Deno.test({
  name:
    "Cable is slowed down at both ends, and leaves its name at once, whoever uses the namespace",
  ignore: reason !== undefined,
  fn: async () => {
    const first = await Cable.start(ENDS);
    const { namespace, device } = first;
    // 1 MB/s.
    assertMatch(await output("tc", "qdisc", "show", "dev", device), /tbf .*rate 8Mbit/);
    assertMatch(await output("tc", "-n", namespace, "qdisc", "show", "dev", "eth0"), /tbf .*8Mbit/);
    // The system keeps a namespace, and a cable in it, while a process runs there.
    const user = new Deno.Command("ip", {
      args: ["netns", "exec", namespace, "sh", "-c", "echo inside; read line"],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const lines = user.stdout.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
    assertEquals((await lines.next()).value, "inside\n");
    await first[Symbol.asyncDispose]();
    {
      await using second = await Cable.start(ENDS);
      assertEquals(second.device, device);
      assertMatch(await output("ip", "link", "show", device), /state UP|LOWER_UP/);
    }
    await user.stdin.close();
    await lines.return?.();
    await user.status;
    await until(async () => !(await output("ip", "netns", "list")).includes(namespace));
    assertEquals(await output("ip", "link", "show", device), "");
  },
});

Deno.test({
  name: "Cable leaves nothing behind when its program exits",
  ignore: reason !== undefined,
  fn: async () => {
    const cable = new URL("../../../cli/fastflow/cable.ts", import.meta.url);
    await withFiles({
      "program.ts": `
        import { Cable } from ${JSON.stringify(cable)};
        const { namespace, device } = await Cable.start(${JSON.stringify(ENDS)});
        console.log(\`\${namespace} \${device}\`);
        Deno.exit(130);`,
    }, async (folder) => {
      await using child = startChild(`${folder}/program.ts`, {
        flags: ["-P", "--allow-run", "--no-check"],
      });
      const [, namespace = "", device = ""] = await child.line(/^(leat-\S+) (leat-\S+)$/);
      try {
        assertEquals((await child.status).code, 130);
        assertEquals((await output("ip", "netns", "list")).includes(namespace), false);
        assertEquals(await output("ip", "link", "show", device), "");
      } finally {
        await output("ip", "link", "del", device);
        await output("ip", "netns", "del", namespace);
      }
    });
  },
});
