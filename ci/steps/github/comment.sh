#!/usr/bin/env bash
# Write one comment on the pull request and keep it up to date. A hidden marker identifies it.
#
#   KDECLARE_PULL  the number of the pull request; KDECLARE_REVISION, KDECLARE_RUN_URL: the planned commit, and the run
#   KDECLARE_COMMENT_AUTHOR  the user of GH_TOKEN (default: github-actions[bot])
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
