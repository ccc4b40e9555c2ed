#!/usr/bin/env bash
# Plan, check and apply from Python, and turn a plan into a chat message.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'library\..*'
python() { "$(dirname "$(command -v kdeclare)")/python" "$@"; }

step "Save a plan for a reviewer."
run 0 kdeclare plan --out it.plan
says "1 to create"

step "Turn the plan into a chat message."
run 0 python chat_message.py it.plan
says '"type": "mrkdwn"' "+ Topic/library.parcels" "1 to create"

step "Plan, check and apply from Python."
run 0 python careful_apply.py
says "1 to create" "1 of 1 operation done"
run 0 python careful_apply.py
says "No changes."

step "The history lists the run with the name of the program."
run 0 kdeclare history
says "careful_apply.py"

step "Added partitions cannot be removed again: the program refuses to apply the change."
edit manifests/parcels.yaml "partitions: 3" "partitions: 6"
run 3 python careful_apply.py
says "1 to change" "Not applied because they are irreversible: Topic/library.parcels."

step "An error in a manifest is returned as data, with its position."
edit manifests/parcels.yaml "retention.ms" "retention.mss"
run 1 python careful_apply.py
says "manifests/parcels.yaml:10:5"
