#!/usr/bin/env bash
# The AG-UI reader beside the reference client, over N streams that follow from SEED: bash tests/oracle.sh [SEED] [N]
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH="$PWD/.venv/bin:$PATH"

client=tests/agui_oracle/node_modules/ready
if [[ ! $client -nt tests/agui_oracle/package-lock.json ]]; then
  (cd tests/agui_oracle && npm ci --ignore-scripts --loglevel=error)
  touch "$client"
fi
exec python -m tests.agui_oracle.compare "$@"
