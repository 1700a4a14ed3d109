/**
 * DYNAMIC: splits are handed out first come first served, each to one task, once.
 *
 * @module
 */
import { Mode } from "./mode.ts";

/** See the module. */
export class DynamicMode extends Mode {}
