#!/usr/bin/env bash
# Plan, look and apply from code, and tell a chat of a plan.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'library\..*'
python() { "$(dirname "$(command -v kdeclare)")/python" "$@"; }

step "A plan, saved for a reviewer."
run 0 kdeclare plan --out it.plan
says "1 to create"

step "The same as a message for a chat."
run 0 python chat_message.py it.plan
says '"type": "mrkdwn"' "+ Topic/library.parcels" "1 to create"

step "Plan, look and apply, from code."
run 0 python careful_apply.py
says "1 to create" "1 of 1 operation done"
run 0 python careful_apply.py
says "No changes."

step "What was done stands in the history, with the program's name."
run 0 kdeclare history
says "careful_apply.py"

step "More partitions cannot be taken back: the program leaves that to people, and nothing is done."
edit manifests/parcels.yaml "partitions: 3" "partitions: 6"
run 3 python careful_apply.py
says "1 to change" "Left to people: Topic/library.parcels."

step "A mistake in a manifest comes as data, with its place."
edit manifests/parcels.yaml "retention.ms" "retention.mss"
run 1 python careful_apply.py
says "manifests/parcels.yaml:10:5"
