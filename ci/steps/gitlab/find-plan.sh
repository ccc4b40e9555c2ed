#!/usr/bin/env bash
# Fetch the plan that was reviewed: that of the last pipeline of the merge request that this commit was
# merged from. Where there is none, nothing is applied. apply.sh looks whether it is what the merged manifests say.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"
. "$(dirname "${BASH_SOURCE[0]}")/api.sh"

nothing() {
  echo "$1 Nothing is applied." >&2
  exit 1
}

answer=$(api "repository/commits/$CI_COMMIT_SHA/merge_requests?per_page=100")
merged=$(pick "$answer" gitlab-merged "$CI_COMMIT_BRANCH")
[ -n "$merged" ] || nothing "Commit $CI_COMMIT_SHA was not merged from a merge request, so nobody reviewed a plan."

answer=$(api "merge_requests/$merged")
pipeline=$(pick "$answer" gitlab-pipeline "$CI_PROJECT_ID")
[ -n "$pipeline" ] || nothing "The last pipeline of !$merged was no success, or none of its own, or a fork's."

name=${KDECLARE_PLAN_JOB:-kdeclare-plan}
answer=$(api "pipelines/$pipeline/jobs?scope[]=success&per_page=100" --globoff)
job=$(pick "$answer" gitlab-job "$name")
[ -n "$job" ] || nothing "Pipeline $pipeline of !$merged has no successful job '$name'."

api "jobs/$job/artifacts/$plan" --output "$out/fetched.json" \
  || nothing "Job $job of !$merged keeps no $plan (any more)."
mv "$out/fetched.json" "$plan"
# not shown: anyone who can push a branch can have put anything into it
echo "Found the plan of !$merged, made by job $job."
