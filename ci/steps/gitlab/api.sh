# shellcheck shell=bash
# Functions for GitLab's API, with KDECLARE_GITLAB_TOKEN; the steps source this file after settings.sh.
# api PATH [curl's options …]: send a request about the project

api() { request "projects/$CI_PROJECT_ID/$1" "${@:2}"; }

# Print the id of the token's user.
own_id() {
  local answer
  answer=$(request user) || return
  pick "$answer" gitlab-user
}

request() {
  # with a file descriptor, because every user of the machine can read command lines
  curl --silent --show-error --fail-with-body --retry 3 \
    --config <(printf 'header = "PRIVATE-TOKEN: %s"\n' "$KDECLARE_GITLAB_TOKEN") \
    "${@:2}" "$CI_API_V4_URL/$1"
}
