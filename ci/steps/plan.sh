#!/usr/bin/env bash
# Plan, and write the plan, the text of the comment, the findings for code scanning and the exit code.
# A failed plan does not fail this step: the comment reports it first, and then conclude.sh fails.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

rm -f "$plan" "$out/report.md" "$out/kdeclare.sarif"
signing=()
# kdeclare reads the variable itself, because every user can read command lines
# shellcheck disable=SC2016
[ -z "${KDECLARE_SIGNING_KEY:-}" ] || signing=(--sign '${env.KDECLARE_SIGNING_KEY}')
code=0
kdeclare plan "${reach[@]}" "${arguments[@]}" "${signing[@]}" --out "$plan" --format markdown > "$out/report.md" || code=$?
[ -s "$out/report.md" ] || printf '## kdeclare failed\n\nExit code %s. See the log for the reason.\n' "$code" > "$out/report.md"
if [ -s "$plan" ]; then
  kdeclare show "$plan" --project "$project" --format sarif > "$out/kdeclare.sarif"
  tell artifact "kdeclare-plan-$which-${KDECLARE_PULL:-0}"
  tell plan-file "$plan"
else
  kdeclare plan "${reach[@]}" "${arguments[@]}" --format sarif > "$out/kdeclare.sarif" || true
fi
findings
printf '%s\n' "$code" > "$out/exit-code"
summary "$out/report.md"
