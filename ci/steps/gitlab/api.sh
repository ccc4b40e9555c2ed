# shellcheck shell=bash
# GitLab's API, with KDECLARE_GITLAB_TOKEN; sourced by the steps, after settings.sh.
# api PATH [curl's options …]: of the project

api() { request "projects/$CI_PROJECT_ID/$1" "${@:2}"; }

# The id of the user that the token belongs to.
own_id() {
  local answer
  answer=$(request user) || return
  pick "$answer" gitlab-user
}

request() {
  # by a file descriptor: what stands in a command line, everybody on the machine can read
  curl --silent --show-error --fail-with-body --retry 3 \
    --config <(printf 'header = "PRIVATE-TOKEN: %s"\n' "$KDECLARE_GITLAB_TOKEN") \
    "${@:2}" "$CI_API_V4_URL/$1"
}
