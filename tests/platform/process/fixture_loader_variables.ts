/** Starts a shell. */
import { outputOf } from "../../../platform/process/output_of.ts";

const { stdout } = await outputOf("sh", { args: ["-c", "echo started"] });
await Deno.stdout.write(stdout);
