/** Progress bars of all programs. */

// @ts-types="@types/cli-progress"
import cliProgress from "cli-progress";
import type { Writable } from "node:stream";

const FRAMES_PER_SECOND = 10;

/** Creates bars that disappear when they are done. Lines may be written above them. */
export function createBars(stream: Writable, format: string): cliProgress.MultiBar {
  return new cliProgress.MultiBar({
    stream,
    format,
    barsize: 24,
    hideCursor: true,
    linewrap: false,
    clearOnComplete: true,
    gracefulExit: false,
    fps: FRAMES_PER_SECOND,
    emptyOnZero: true,
    // Otherwise a line that is written above shifts unchanged bars.
    forceRedraw: true,
  }, cliProgress.Presets.shades_classic);
}
