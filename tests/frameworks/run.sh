#!/usr/bin/env bash
# The hooks against the real frameworks: each in an environment of its own, the newest and the oldest version that the
# hook is for. Names some with: tests/frameworks/run.sh strands-newest
set -euo pipefail
cd "$(dirname "$0")/../.."

tried() {
  local name=$1 framework=${1%-*} shared=()
  framework=${framework//-/_}
  make --no-print-directory ".envs/$name/ready"
  echo "$name"
  [[ ! -f tests/frameworks/$framework/paths.py ]] || shared=(tests/frameworks/test_*.py)    # it has a hook of its own
  STOPCAUSE_FRAMEWORK=$framework STOPCAUSE_VERSIONS=${name##*-} ".envs/$name/bin/python" -m pytest -q \
    --confcutdir=tests/frameworks -p no:cacheprovider -o $'filterwarnings=default\nerror:::stopcause' \
    "${shared[@]}" "tests/frameworks/$framework"
}

names=("$@")
[[ ${#names[@]} -gt 0 ]] || names=($(cd requirements/frameworks && ls ./*.txt | sed 's#./##; s#.txt$##'))
if [[ ${#names[@]} -eq 1 ]]; then
  tried "${names[0]}"
else    # as many at once as there are processors; what one says stays together
  printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I NAME \
    bash -c 'said=$(bash tests/frameworks/run.sh NAME 2>&1) && code=0 || code=$?; printf "%s\n" "$said"; exit $code'
fi
