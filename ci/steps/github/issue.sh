#!/usr/bin/env bash
# One issue about drift: opened, kept up to date, and closed when all is in order again.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"

marker="<!-- kdeclare audit $audited -->"
label=${KDECLARE_ISSUE_LABEL:-kdeclare-drift}
answer=$(gh issue list --repo "$GITHUB_REPOSITORY" --label "$label" --state open --limit 100 \
  --json number,body,author)
found=$(pick "$answer" github-issue "$marker" "${KDECLARE_COMMENT_AUTHOR:-github-actions[bot]}")

case $(cat "$out/found") in
  drift)
    { printf '%s\n' "$marker" && cat "$out/report.md"; } > "$out/issue.md"
    if [ -n "$found" ]; then
      gh issue edit "$found" --repo "$GITHUB_REPOSITORY" --body-file "$out/issue.md"
    else
      gh label create "$label" --repo "$GITHUB_REPOSITORY" --force \
        --description "A cluster is not as its manifests say"
      gh issue create --repo "$GITHUB_REPOSITORY" --label "$label" --body-file "$out/issue.md" \
        --title "Kafka is not as declared: ${KDECLARE_FLEET:-$which}"
    fi
    ;;
  in-order)
    [ -z "$found" ] || gh issue close "$found" --repo "$GITHUB_REPOSITORY" --comment "All is as declared again."
    ;;
  *) echo "The audit failed: what is known of drift stays as it is." >&2 ;;
esac
