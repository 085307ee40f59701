// The Node door: all of the edge-safe one, and the file sink.
import type { CountingSink, SinkLimits } from './index.js';

export * from './index.js';

/**
 * Appends NDJSON to a file.
 * @param path without it, a file of this process in the spool that `stopcause` reads
 */
export function fileSink(path?: string | URL, limits?: SinkLimits): CountingSink;
