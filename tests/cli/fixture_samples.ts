/** Samples two processes of one name, of which only the first has reported its memory. */
import { Samples } from "../../cli/soak/samples.ts";

const samples = new Samples();
// Ids that no process has.
const [before, after] = [2 ** 30, 2 ** 30 + 1];
samples.received(`memory {"pid":${before},"rss":${2 ** 20},"heapUsed":${2 ** 21}}`);
for (const pid of [before, after]) await samples.take([{ name: "worker-1", pid }]);
console.log(JSON.stringify([...samples.series]));
