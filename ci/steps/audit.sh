#!/usr/bin/env bash
# Say what is no longer as declared: of one cluster, or with KDECLARE_FLEET (a fleet file) of a fleet.
# Leaves report.md and what was found: "drift", "in-order", or "failed" where that is not known.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

rm -rf "$out/report.md" "$out/audit"
code=0
if [ -n "${KDECLARE_FLEET:-}" ]; then
  # what is against a policy is no change for an apply, and yet not in order
  kdeclare fleet audit "$KDECLARE_FLEET" --out "$out/audit" --detailed-exitcode --fail-on policy || code=$?
  [ ! -f "$out/audit/report.md" ] || cp "$out/audit/report.md" "$out/report.md"
else
  kdeclare plan "${reach[@]}" --detailed-exitcode --format markdown > "$out/report.md" || code=$?
  if [ "$code" -eq 1 ]; then
    # a plan with errors, as of partitions that are too many to go back: it has looked, and all is not in order
    kdeclare plan "${reach[@]}" --format json > "$out/looked.json" 2> /dev/null || true
    ! kdeclare show "$out/looked.json" > /dev/null 2>&1 || code=2
  fi
fi
case $code in
  0) found=in-order ;;
  2 | 3) found=drift code=0 ;;  # told by the issue; the job itself has done what it is for
  *) found=failed ;;
esac
printf '%s\n' "$found" > "$out/found"
printf '%s\n' "$code" > "$out/exit-code"
[ ! -s "$out/report.md" ] || summary "$out/report.md"
