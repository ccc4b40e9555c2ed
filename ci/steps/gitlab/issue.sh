#!/usr/bin/env bash
# Open one issue about drift, keep it up to date, and close it when the drift is gone.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"
. "$(dirname "${BASH_SOURCE[0]}")/api.sh"

marker="<!-- kdeclare audit $audited -->"
label=${KDECLARE_ISSUE_LABEL:-kdeclare-drift}
author=$(own_id)
answer=$(api "issues?state=opened&labels=$label&per_page=100")
found=$(pick "$answer" gitlab-issue "$marker" "$author")

case $(cat "$out/found") in
  drift)
    { printf '%s\n' "$marker" && cat "$out/report.md"; } > "$out/issue.md"
    if [ -n "$found" ]; then
      api "issues/$found" --request PUT --data-urlencode "description@$out/issue.md" > /dev/null
    else
      api issues --request POST --data-urlencode "labels=$label" \
        --data-urlencode "title=Kafka differs from its manifests: ${KDECLARE_FLEET:-$which}" \
        --data-urlencode "description@$out/issue.md" > /dev/null
    fi
    ;;
  in-order) [ -z "$found" ] || api "issues/$found" --request PUT --data-urlencode "state_event=close" > /dev/null ;;
  *) echo "The audit failed; the issue stays unchanged." >&2 ;;
esac
