/** Everything that is fuzzed, by name. */
import type { Target } from "./target.ts";
import { CHECKPOINT_TARGETS } from "./targets/checkpoints.ts";
import { FILE_TARGETS } from "./targets/files.ts";
import { GRAPH_TARGETS } from "./targets/graphs.ts";
import { IMAGE_TARGETS } from "./targets/images.ts";
import { JOURNAL_TARGETS } from "./targets/journals.ts";
import { MESSAGE_TARGETS } from "./targets/messages.ts";
import { PROCESS_TARGETS } from "./targets/processes.ts";
import { REQUEST_TARGETS } from "./targets/requests.ts";
import { SOCKET_TARGETS } from "./targets/sockets.ts";

/** All targets, by name. */
export const TARGETS: Readonly<Record<string, Target>> = {
  ...SOCKET_TARGETS,
  ...MESSAGE_TARGETS,
  ...PROCESS_TARGETS,
  ...REQUEST_TARGETS,
  ...GRAPH_TARGETS,
  ...CHECKPOINT_TARGETS,
  ...JOURNAL_TARGETS,
  ...FILE_TARGETS,
  ...IMAGE_TARGETS,
};
