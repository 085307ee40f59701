#!/usr/bin/env bash
# The AG-UI reader beside the reference client, over N streams that follow from SEED: bash tests/oracle.sh [SEED] [N]
set -euo pipefail
cd "$(dirname "$0")/.."
make --silent tests/agui_oracle/node_modules/ready
PATH="$PWD/.venv/bin:$PATH" exec python -m tests.agui_oracle.compare "$@"
