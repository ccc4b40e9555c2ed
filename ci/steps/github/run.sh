#!/usr/bin/env bash
# Run one command of action.yml. Uploads and the final exit code are separate steps.
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/../settings.sh"

case ${KDECLARE_COMMAND:-} in
  validate)
    "$steps/base.sh"
    "$steps/validate.sh"
    ;;
  plan)
    "$steps/base.sh"
    "$steps/state.sh" load
    "$steps/plan.sh"
    [ "${KDECLARE_COMMENT:-true}" != true ] || [ -z "${KDECLARE_PULL:-}" ] || "$steps/github/comment.sh"
    ;;
  apply)
    "$steps/github/find-plan.sh"
    "$steps/apply.sh"
    ;;
  audit)
    "$steps/state.sh" load
    "$steps/audit.sh"
    "$steps/github/issue.sh"
    ;;
  *)
    echo "command: '${KDECLARE_COMMAND:-}' is not valid. Use validate, plan, apply or audit." >&2
    exit 64
    ;;
esac
