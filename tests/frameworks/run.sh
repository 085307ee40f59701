#!/usr/bin/env bash
# The hooks against the real frameworks: each in an environment of its own, the newest and the oldest version that the
# hook is for. Names some with: tests/frameworks/run.sh strands-newest
set -euo pipefail
cd "$(dirname "$0")/../.."
names=("$@")
[[ ${#names[@]} -gt 0 ]] || names=($(cd requirements/frameworks && ls ./*.txt | sed 's#./##; s#.txt$##'))
for name in "${names[@]}"; do
  make --no-print-directory ".envs/$name/ready"
  framework=${name%-*}
  echo "$name"
  STOPCAUSE_FRAMEWORK=${framework//-/_} STOPCAUSE_VERSIONS=${name##*-} ".envs/$name/bin/python" -m pytest -q \
    --confcutdir=tests/frameworks -p no:cacheprovider -o $'filterwarnings=default\nerror:::stopcause' \
    tests/frameworks/test_*.py "tests/frameworks/${framework//-/_}"
done
