#!/usr/bin/env bash
# Write one note on the merge request and keep it up to date. A hidden marker and its author identify it.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"
. "$(dirname "${BASH_SOURCE[0]}")/api.sh"

marker="<!-- kdeclare plan $which -->"
{
  printf '%s\n' "$marker"
  cat "$out/report.md"
  printf '\n<sub>Planned for %s by <a href="%s">this job</a>; %s.</sub>\n' \
    "${CI_COMMIT_SHA:0:12}" "$CI_JOB_URL" "$(promise)"
} > "$out/comment.md"

notes="merge_requests/$CI_MERGE_REQUEST_IID/notes"
author=$(own_id)
found=
page=1
answer=""
while [ -z "$found" ] && [ "$answer" != "[]" ]; do
  answer=$(api "$notes?per_page=100&page=$page")
  page=$((page + 1))
  found=$(pick "$answer" gitlab-note "$marker" "$author")
done
if [ -n "$found" ]; then
  api "$notes/$found" --request PUT --data-urlencode "body@$out/comment.md" > /dev/null
  echo "Updated the note on !$CI_MERGE_REQUEST_IID."
else
  api "$notes" --request POST --data-urlencode "body@$out/comment.md" > /dev/null
  echo "Commented on !$CI_MERGE_REQUEST_IID."
fi
