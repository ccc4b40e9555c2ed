#!/usr/bin/env bash
# Write one thread on the pull request in Azure Repos, and keep its comment up to date. A hidden marker and its author
# identify it.
#
#   KDECLARE_AZURE_TOKEN  $(System.AccessToken), or a personal access token with the scope "Code (read & write)"
#   KDECLARE_PULL, KDECLARE_REVISION, KDECLARE_RUN_URL  the number of the pull request, the planned commit, and the build
#   SYSTEM_COLLECTIONURI, SYSTEM_TEAMPROJECTID, BUILD_REPOSITORY_ID  as Azure Pipelines sets them
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"

request() {
  # with a file descriptor, because every user of the machine can read command lines
  curl --silent --show-error --fail-with-body --retry 3 \
    --config <(printf 'header = "Authorization: Basic %s"\n' "$(printf ':%s' "$KDECLARE_AZURE_TOKEN" | base64 | tr -d '\n')") \
    --header 'Content-Type: application/json' "${@:2}" "${SYSTEM_COLLECTIONURI%/}/$1"
}

marker="<!-- kdeclare plan $which -->"
{
  printf '%s\n' "$marker"
  cat "$out/report.md"
  printf '\nPlanned for %s by [this build](%s); %s.\n' "${KDECLARE_REVISION:0:12}" "$KDECLARE_RUN_URL" "$(promise)"
} > "$out/comment.md"

threads="$SYSTEM_TEAMPROJECTID/_apis/git/repositories/$BUILD_REPOSITORY_ID/pullRequests/$KDECLARE_PULL/threads"
version="api-version=7.1"
answer=$(request "_apis/connectionData")
author=$(pick "$answer" azure-user)
answer=$(request "$threads?$version")
mapfile -t found <<< "$(pick "$answer" azure-comment "$marker" "$author")"
if [ "${#found[@]}" -eq 2 ]; then
  python3 -IS "$steps/azure/body.py" comment < "$out/comment.md" > "$out/comment.json"
  request "$threads/${found[0]}/comments/${found[1]}?$version" --request PATCH --data-binary "@$out/comment.json" > /dev/null
  echo "Updated the comment on pull request $KDECLARE_PULL."
else
  python3 -IS "$steps/azure/body.py" thread < "$out/comment.md" > "$out/comment.json"
  request "$threads?$version" --request POST --data-binary "@$out/comment.json" > /dev/null
  echo "Commented on pull request $KDECLARE_PULL."
fi
