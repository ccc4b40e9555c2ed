# shellcheck shell=bash
# GitLab's API, with KDECLARE_GITLAB_TOKEN; sourced by the steps. api PATH [curl's options …]

api() {
  # by a file descriptor: what stands in a command line, everybody on the machine can read
  curl --silent --show-error --fail-with-body --retry 3 \
    --config <(printf 'header = "PRIVATE-TOKEN: %s"\n' "$KDECLARE_GITLAB_TOKEN") \
    "${@:2}" "$CI_API_V4_URL/projects/$CI_PROJECT_ID/$1"
}
