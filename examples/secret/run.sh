#!/usr/bin/env bash
# A secret in a broker's config: planned, applied and changed without ever being written down.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'secret\..*'

# No file of the project may hold this text: manifests, plans, state and journals.
nowhere() {
  local file
  shopt -s globstar dotglob
  for file in ./**/*; do
    [[ ! -f $file || $(<"$file") != *"$1"* ]] || fail "$file holds the secret."
  done
}

step "Without the secret there is nothing to plan with."
unset KEY_PASSWORD
run 1 kdeclare validate
says "manifests/listener.yaml:7:46" "KEY_PASSWORD"

step "With it: the plan does not show it, and does not hold it either."
export KEY_PASSWORD=correct-horse
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "(unset) → (sensitive)"
run 0 kdeclare apply it.plan --yes
says_not "correct-horse"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Another secret is a change, although Kafka shows neither."
export KEY_PASSWORD=battery-staple
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "(sensitive) → (sensitive)"

step "A plan is for the secret that it was made with."
KEY_PASSWORD=something-else run 4 kdeclare apply it.plan --yes
says "A secret has changed"
run 0 kdeclare apply it.plan --yes
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Neither secret was written down anywhere."
nowhere correct-horse
nowhere battery-staple
