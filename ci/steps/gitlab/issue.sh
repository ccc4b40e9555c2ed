#!/usr/bin/env bash
# Open an issue about drift, or one for each team, keep it up to date, and close it when the drift is gone.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"
. "$(dirname "${BASH_SOURCE[0]}")/api.sh"

label=${KDECLARE_ISSUE_LABEL:-kdeclare-drift}
author=$(own_id)
answer=$(api "issues?state=opened&labels=$label&per_page=100")
actions=$(plan_issues gitlab "$author" <<< "$answer")

while IFS=$'\t' read -r action what file; do
  case $action in
    edit) api "issues/$what" --request PUT --data-urlencode "description@$file" > /dev/null ;;
    create)
      api issues --request POST --data-urlencode "labels=$label" --data-urlencode "title=$what" \
        --data-urlencode "description@$file" > /dev/null
      ;;
    close) api "issues/$what" --request PUT --data-urlencode "state_event=close" > /dev/null ;;
  esac
done <<< "$actions"
