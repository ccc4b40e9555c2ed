#!/usr/bin/env bash
# Plan, and leave the plan itself, the comment's text, the findings for code scanning and the exit code.
# A plan that cannot be made is no failure of this step: the comment says so first, and conclude.sh fails.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

rm -f "$plan" "$out/report.md" "$out/kdeclare.sarif"
code=0
kdeclare plan "${reach[@]}" "${arguments[@]}" --out "$plan" --format markdown > "$out/report.md" || code=$?
[ -s "$out/report.md" ] || printf '## kdeclare failed\n\nExit code %s; the log says why.\n' "$code" > "$out/report.md"
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
