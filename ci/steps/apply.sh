#!/usr/bin/env bash
# Apply exactly the saved plan, if the merged manifests produce it. Otherwise refuse it as stale, with exit code 4.
# kdeclare itself refuses a plan that no longer matches the cluster, with the same code.
set -euo pipefail
writes_state=true
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

code=0
: > "$out/said.txt"
kdeclare plan "${reach[@]}" "${arguments[@]}" --format json > "$out/fresh.json" || true  # a plan with errors is also a plan
python3 -IS "$steps/reviewed.py" "$plan" "$out/fresh.json" > "$out/applied.txt" || code=$?
if [ "$code" -eq 0 ]; then
  kdeclare apply "$plan" "${reach[@]}" --yes 2>&1 > "$out/applied.txt" | tee "$out/said.txt" >&2 ||
    code=${PIPESTATUS[0]}
fi
cat "$out/applied.txt"
# add the reason why nothing could be applied, which other formats have on stdout; leave out the rest of the log
sed -n -E '/^(error|denied): /,$p' "$out/said.txt" >> "$out/applied.txt"
rm "$out/said.txt"
{
  printf '## kdeclare apply: exit code %s\n\n<pre>\n' "$code"
  sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' "$out/applied.txt"
  printf '</pre>\n'
} > "$out/report.md"
printf '%s\n' "$code" > "$out/exit-code"
summary "$out/report.md"
