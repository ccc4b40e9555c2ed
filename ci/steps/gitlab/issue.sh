#!/usr/bin/env bash
# One issue about drift: opened, kept up to date, and closed when all is in order again.
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
        --data-urlencode "title=Kafka is not as declared: ${KDECLARE_FLEET:-$which}" \
        --data-urlencode "description@$out/issue.md" > /dev/null
    fi
    ;;
  in-order) [ -z "$found" ] || api "issues/$found" --request PUT --data-urlencode "state_event=close" > /dev/null ;;
  *) echo "The audit failed: what is known of drift stays as it is." >&2 ;;
esac
