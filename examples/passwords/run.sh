#!/usr/bin/env bash
# Set, rotate and restore the password of a SCRAM user, and detect a password that another client sets.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'passwords\..*'

user=(--entity-type users --entity-name passwords-checkout)
export CHECKOUT_OLD=correct-horse CHECKOUT_NEW=battery-staple

# Check that no file of the project contains this text: manifests, plans, state and journals.
nowhere() {
  local file
  shopt -s globstar dotglob
  for file in ./**/*; do
    [[ ! -f $file || $(<"$file") != *"$1"* ]] || fail "$file contains the password."
  done
}

step "Create the user. Neither the plan nor the state contains the password."
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "mechanisms.SCRAM-SHA-256" "(sensitive)"
run 0 kdeclare apply it.plan --yes
nowhere correct-horse
run 0 kafka-configs --describe "${user[@]}"
says "SCRAM-SHA-256=iterations="
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Another client sets a password. This is drift, and apply sets the declared password again."
run 0 kafka-configs --alter "${user[@]}" --add-config 'SCRAM-SHA-256=[password=stolen]'
run 2 kdeclare plan --detailed-exitcode
says "changed outside kdeclare" "disruptive"
run 0 kdeclare apply --yes

step "Add a second mechanism with the new password. The old password stays valid."
edit manifests/checkout.yaml "    SCRAM-SHA-256: {password: '\${env.CHECKOUT_OLD}'}" \
  "    SCRAM-SHA-256: {password: '\${env.CHECKOUT_OLD}'}
    SCRAM-SHA-512: {password: '\${env.CHECKOUT_NEW}'}"
run 2 kdeclare plan --detailed-exitcode
says "mechanisms.SCRAM-SHA-512" "(unset)"
run 0 kdeclare apply --yes

step "When all clients use the new password, remove the old mechanism."
edit manifests/checkout.yaml "    SCRAM-SHA-256: {password: '\${env.CHECKOUT_OLD}'}
" ""
run 0 kdeclare apply --yes
run 0 kafka-configs --describe "${user[@]}"
says "SCRAM-SHA-512=iterations="
says_not "SCRAM-SHA-256"

step "A rollback restores the old mechanism with its password."
run 0 kdeclare rollback --yes
run 0 kafka-configs --describe "${user[@]}"
says "SCRAM-SHA-256=iterations="
nowhere battery-staple

step "An impossible credential is found before a broker is contacted."
edit manifests/checkout.yaml "SCRAM-SHA-512: {" "SCRAM-SHA-512: {iterations: 1000, "
run 1 kdeclare validate
says "brokers accept 4096 to 16384"
