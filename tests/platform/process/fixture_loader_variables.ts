/** Starts a shell. */
import { loaderVariables } from "../../../platform/process/loader_variables.ts";

const command = new Deno.Command("sh", { args: ["-c", "echo started"], env: loaderVariables() });
await Deno.stdout.write((await command.output()).stdout);
