#!/usr/bin/env bash
# One comment on the pull request, kept up to date: found again by a marker that nobody sees.
#
#   KDECLARE_PULL  the pull request's number; KDECLARE_REVISION, KDECLARE_RUN_URL: what was planned, and where
#   KDECLARE_COMMENT_AUTHOR  who GH_TOKEN belongs to (default: github-actions[bot])
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"

marker="<!-- kdeclare plan $which -->"
{
  printf '%s\n' "$marker"
  cat "$out/report.md"
  printf '\n<sub>Planned for %s by <a href="%s">this run</a>; %s.</sub>\n' \
    "${KDECLARE_REVISION:0:12}" "$KDECLARE_RUN_URL" "$(promise)"
} > "$out/comment.md"

comments="repos/$GITHUB_REPOSITORY/issues/$KDECLARE_PULL/comments"
answer=$(gh api --paginate --slurp "$comments?per_page=100")
found=$(pick "$answer" github-comment "$marker" "${KDECLARE_COMMENT_AUTHOR:-github-actions[bot]}")
if [ -n "$found" ]; then
  gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$found" -F "body=@$out/comment.md"
  echo "Updated the comment on #$KDECLARE_PULL."
else
  gh api --silent --method POST "$comments" -F "body=@$out/comment.md"
  echo "Commented on #$KDECLARE_PULL."
fi
