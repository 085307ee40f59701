// Every path, from every list in this folder.
import { readdir } from 'node:fs/promises';

const HERE = new URL('./', import.meta.url);
const NO_LISTS = new Set(['index.js', 'each.js']);

/** @returns {Promise<object[]>} Paths by id; each id once. */
export async function allPaths() {
  const names = (await readdir(HERE)).filter((name) => name.endsWith('.js') && !NO_LISTS.has(name)).sort();
  const lists = await Promise.all(names.map(async (name) => (await import(new URL(name, HERE))).paths ?? []));
  const paths = lists.flat();
  const twice = paths.filter(({ id }, index) => paths.findIndex((path) => path.id === id) !== index);
  if (twice.length > 0) throw new Error(`two paths are called ${twice.map(({ id }) => id).join(', ')}`);
  return paths;
}
