#!/usr/bin/env bash
# Apply the saved plan, that and nothing else. kdeclare refuses a stale one with exit code 4.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

code=0
kdeclare apply "$plan" "${reach[@]}" --yes 2>&1 > "$out/applied.txt" | tee "$out/said.txt" >&2 ||
  code=${PIPESTATUS[0]}
cat "$out/applied.txt"
# why it could not be applied at all, which other formats have on stdout; not what else went to the log
sed -n -E '/^(error|denied): /,$p' "$out/said.txt" >> "$out/applied.txt"
rm "$out/said.txt"
{
  printf '## kdeclare apply: exit code %s\n\n<pre>\n' "$code"
  sed 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g' "$out/applied.txt"
  printf '</pre>\n'
} > "$out/report.md"
printf '%s\n' "$code" > "$out/exit-code"
summary "$out/report.md"
