#!/usr/bin/env bash
# Open one issue about drift, keep it up to date, and close it when the drift is gone.
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
        --description "A cluster differs from its manifests"
      gh issue create --repo "$GITHUB_REPOSITORY" --label "$label" --body-file "$out/issue.md" \
        --title "Kafka differs from its manifests: ${KDECLARE_FLEET:-$which}"
    fi
    ;;
  in-order)
    [ -z "$found" ] || gh issue close "$found" --repo "$GITHUB_REPOSITORY" --comment "The cluster matches its manifests again."
    ;;
  *) echo "The audit failed; the issue stays unchanged." >&2 ;;
esac
