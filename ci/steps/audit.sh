#!/usr/bin/env bash
# Report the drift of one cluster or, with KDECLARE_FLEET (a fleet file), of a fleet.
# Writes report.md and the result: "drift", "in-order", or "failed" if the state is unknown.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

# The folder with earlier audits is kept from night to night, so that findings have an age. Only the reports of the
# last night are removed, because they must not be mistaken for those of this one.
audits=$out/audit
rm -rf "$out/report.md" "$out/issues" "$audits/report.md" "$audits/teams" "$audits/_unfinished"
code=0 sent=0
if [ -n "${KDECLARE_FLEET:-}" ]; then
  # a policy violation is not a change for an apply, but must be reported
  by=()
  [ "${KDECLARE_ISSUES_BY:-}" != team ] || by=(--by team)
  kdeclare fleet audit "$KDECLARE_FLEET" --out "$audits" --detailed-exitcode --fail-on policy \
    ${by[@]+"${by[@]}"} || code=$?
  if [ -f "$audits/report.md" ]; then
    cp "$audits/report.md" "$out/report.md"
    [ "${KDECLARE_NOTIFY:-}" != true ] || kdeclare fleet notify "$KDECLARE_FLEET" --out "$audits" || sent=$?
    python3 -IS "$steps/audits.py" "$audits"
  fi
else
  kdeclare plan "${reach[@]}" --detailed-exitcode --format markdown > "$out/report.md" || code=$?
  if [ "$code" -eq 1 ]; then
    # a plan with errors, such as more partitions than declared: the audit worked, and there is drift
    kdeclare plan "${reach[@]}" --format json > "$out/looked.json" 2> /dev/null || true
    ! kdeclare show "$out/looked.json" > /dev/null 2>&1 || code=2
  fi
fi
case $code in
  0) found=in-order ;;
  2 | 3) found=drift code=0 ;;  # the issue reports it; the job itself succeeded
  *) found=failed ;;
esac
[ "$code" -ne 0 ] || code=$sent  # the audit is complete, and the issue is written, but a message was not sent
printf '%s\n' "$found" > "$out/found"
printf '%s\n' "$code" > "$out/exit-code"
[ ! -s "$out/report.md" ] || summary "$out/report.md"
