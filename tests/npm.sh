#!/usr/bin/env bash
# The npm package as a stranger gets it: the same files as the tree, nothing drawn in, and the documented lines run in an
# empty folder beside the SDK.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd ai-sdk
npm pack --silent --pack-destination "$work" >/dev/null
tarball=$(ls "$work"/*.tgz)
diff <(git ls-files package.json README.md src example | sort) <(tar -tzf "$tarball" | sed 's#^package/##' | sort)

mkdir "$work/app"
cd "$work/app"
echo '{"private": true, "type": "module"}' >package.json
sdk=$(node -p 'require(process.argv[1]).devDependencies.ai' "$root/ai-sdk/package.json")
npm install --silent --prefer-offline --no-audit --no-fund --ignore-scripts "ai@$sdk" zod "$tarball"
drawn=$(node -p 'Object.keys(require("./node_modules/@stopcause/ai-sdk/package.json").dependencies ?? {}).join()')
[[ -z $drawn ]] || { echo "the package draws in $drawn"; exit 1; }

# The documented lines, as they stand, beside an agent with a scripted model.
cp "$root/docs/connect/ai-sdk.js" .
cat >agent.js <<'AGENT'
import { tool } from 'ai';
import { z } from 'zod';
import { scripted } from './node_modules/@stopcause/ai-sdk/example/model.js';
export const model = scripted({ tool: 'lookup', input: { ticket: 'T-1' } }, 'The ticket is closed.');
export const tools = { lookup: tool({ inputSchema: z.object({ ticket: z.string() }), execute: async () => 'open' }) };
AGENT
node ai-sdk.js
said=$(stopcause explain receipts.ndjson --format table)
[[ $said == *"C FALSE_COMPLETE"*"ticket-agent"*"2 of 8 steps"* ]] || { echo "explain says: $said"; exit 1; }

# The types of the package, not those of the tree.
sed "s#'../../src/node.js'#'@stopcause/ai-sdk/node'#" "$root/ai-sdk/test/types/calls.ts" >calls.ts
"$root/ai-sdk/node_modules/.bin/tsc" --noEmit --strict --skipLibCheck --target es2024 --module nodenext --types '' calls.ts
head -n 1 <<<"$said"
