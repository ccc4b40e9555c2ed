#!/usr/bin/env bash
# Write the plan into one comment on the pull request, on any CI system, and keep the comment up to date.
#
#   KDECLARE_FORGE     github, gitlab, azure, or none, which only shows the plan in the log
#   KDECLARE_PULL      the number of the pull request
#   KDECLARE_REVISION  the planned commit; KDECLARE_RUN_URL: the page of the build
#
# For github, GITHUB_REPOSITORY (OWNER/NAME), GH_TOKEN, KDECLARE_COMMENT_AUTHOR (the user of the token) and the program gh
# are needed; for gitlab, CI_API_V4_URL, CI_PROJECT_ID and KDECLARE_GITLAB_TOKEN; for azure, see azure/comment.sh.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"

case ${KDECLARE_FORGE:-none} in
  github) "$steps/github/comment.sh" ;;
  gitlab)
    CI_MERGE_REQUEST_IID=$KDECLARE_PULL CI_COMMIT_SHA=$KDECLARE_REVISION CI_JOB_URL=$KDECLARE_RUN_URL \
      "$steps/gitlab/note.sh"
    ;;
  azure) "$steps/azure/comment.sh" ;;
  none) cat -- "$out/report.md" ;;
  *)
    echo "KDECLARE_FORGE: '$KDECLARE_FORGE' is not valid. Use github, gitlab, azure or none." >&2
    exit 64
    ;;
esac
