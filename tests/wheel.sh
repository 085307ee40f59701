#!/usr/bin/env bash
# The wheel as a stranger gets it: the same files as the tree, and both installs do what they say.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python -m build --no-isolation --outdir "$work/dist" . >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
wheel=$(ls "$work"/dist/*.whl)
diff <(git ls-files stopcause fixtures dashboards docs/connect | sed -E 's#^(fixtures|dashboards|docs/connect)/#stopcause/_data/\1/#' | sort) \
     <(python -c 'import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\n")' "$wheel" | grep '^stopcause/' | sort)
sed '/^ *--hash/d; s/ *\\$//' requirements/dev.txt >"$work/constraints"
for extra in "" "[agui]" "[server]"; do
  uv venv -q --python "$(command -v python)" "$work/env$extra"
  uv pip install -q --python "$work/env$extra/bin/python" -c "$work/constraints" "stopcause$extra @ file://$wheel"
done
root=$PWD
cd "$work"
said=$(env/bin/stopcause 2>&1) && { echo "the small install ran the command line"; exit 1; }
[[ $said == *'pip install "stopcause[server]"'* ]] || { echo "the small install says: $said"; exit 1; }
# What an agent installs records a run, and what an operator installs finds it in the spool and explains it.
export STOPCAUSE_DATA="$work/data"
env/bin/python -W error -c 'import stopcause
with stopcause.run("agent", run_id="r1") as run:
    run.step()'
said=$("env[server]/bin/stopcause" explain r1 --format md)
[[ $said == *"FALSE_COMPLETE (no_contract)"* ]] || { echo "the run in the spool is explained as: $said"; exit 1; }
# What the consumer of an AG-UI agent installs keeps a bad resume back; without the extra it says what is missing.
guarded='from stopcause.agui.guard import ResumeGuard
guard = ResumeGuard()
print(guard.check({"threadId": "t", "runId": "r", "resume": [{"interruptId": "i", "status": "cancelled"}]}).refused)'
[[ $("env[agui]/bin/python" -W error -c "$guarded") == True ]]
said=$(env/bin/python -c "$guarded" 2>&1) && { echo "the guard ran without its extra"; exit 1; }
[[ $said == *'pip install "stopcause[agui]"'* ]] || { echo "the small install says: $said"; exit 1; }
"env[server]/bin/stopcause" connect ai-sdk | diff - "$root/docs/connect/ai-sdk.js"
"env[server]/bin/stopcause" replay >"$work/replay"
tail -n 3 "$work/replay"
