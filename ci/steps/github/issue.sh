#!/usr/bin/env bash
# Open an issue about drift, or one for each team, keep it up to date, and close it when the drift is gone.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"

label=${KDECLARE_ISSUE_LABEL:-kdeclare-drift}
answer=$(gh issue list --repo "$GITHUB_REPOSITORY" --label "$label" --state open --limit 500 \
  --json number,body,author)
actions=$(plan_issues github "${KDECLARE_COMMENT_AUTHOR:-github-actions[bot]}" <<< "$answer")

while IFS=$'\t' read -r action what file; do
  case $action in
    edit) gh issue edit "$what" --repo "$GITHUB_REPOSITORY" --body-file "$file" ;;
    create)
      gh label create "$label" --repo "$GITHUB_REPOSITORY" --force \
        --description "A cluster differs from its manifests"
      gh issue create --repo "$GITHUB_REPOSITORY" --label "$label" --body-file "$file" --title "$what"
      ;;
    close)
      gh issue close "$what" --repo "$GITHUB_REPOSITORY" --comment "The cluster matches its manifests again."
      ;;
  esac
done <<< "$actions"
