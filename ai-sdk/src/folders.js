/** The user data folder and the spool in it, found as `stopcause/settings.py` finds them. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import process from 'node:process';
import { platform } from './platform.js';

/**
 * @returns {string} The user data folder; made by whoever writes first.
 * @throws {Error} Nobody knows where this user's home is, as in some containers.
 */
export function dataFolder() {
  const chosen = platform.env('STOPCAUSE_DATA');
  if (chosen) return resolve(chosen);
  if (process.platform === 'darwin') return join(homedir(), 'Library', 'Application Support', 'stopcause');
  if (process.platform === 'win32') {
    return join(platform.env('LOCALAPPDATA') ?? join(homedir(), 'AppData', 'Local'), 'stopcause');
  }
  return resolve(platform.env('XDG_DATA_HOME') ?? join(homedir(), '.local', 'share'), 'stopcause');
}

/**
 * @returns {string} The folder that hooks write into and `stopcause` takes records in from.
 * @throws {Error} As `dataFolder`.
 */
export function spoolFolder() {
  const chosen = platform.env('STOPCAUSE_SPOOL');
  return chosen ? resolve(chosen) : join(dataFolder(), 'spool');
}
