#!/usr/bin/env bash
# Plan, apply and change a secret in a broker config without ever writing it to a file.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'secret\..*'

# Check that no file of the project contains this text: manifests, plans, state and journals.
nowhere() {
  local file
  shopt -s globstar dotglob
  for file in ./**/*; do
    [[ ! -f $file || $(<"$file") != *"$1"* ]] || fail "$file contains the secret."
  done
}

step "Without the secret, validation fails."
unset KEY_PASSWORD
run 1 kdeclare validate
says "manifests/listener.yaml:7:46" "KEY_PASSWORD"

step "With the secret, the plan neither shows nor contains it."
export KEY_PASSWORD=correct-horse
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "(unset) → (sensitive)"
run 0 kdeclare apply it.plan --yes
says_not "correct-horse"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Another secret is a change, although Kafka returns neither value."
export KEY_PASSWORD=battery-staple
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "(sensitive) → (sensitive)"

step "A plan is valid only for the secret that it was made with."
KEY_PASSWORD=something-else run 4 kdeclare apply it.plan --yes
says "Secret has changed"
run 0 kdeclare apply it.plan --yes
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Neither secret was written to any file."
nowhere correct-horse
nowhere battery-staple
