// Says of each string that comes in (JSON, one a line) what the hook makes of it.
import { createInterface } from 'node:readline';
import { fillIn } from '../../src/node-platform.js';
import { isPersonal, withoutPersonal } from '../../src/personal.js';
import { displayName, identifier } from '../../src/records.js';

fillIn();
for await (const line of createInterface({ input: process.stdin })) {
  const text = JSON.parse(line);
  const record = await withoutPersonal({ owner: identifier(text) });
  console.log(
    JSON.stringify({
      identifier: identifier(text) !== undefined,
      name: displayName(text) ?? null,
      personal: isPersonal(text),
      owner: record.owner ?? null,
    }),
  );
}
