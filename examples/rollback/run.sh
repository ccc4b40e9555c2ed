#!/usr/bin/env bash
# Undo a mistake, undo the undoing, and find that the manifests still hold it.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'rollback\..*'

step "The ledger is kept for a year."
run 0 kdeclare apply --yes

step "The mistake: a second instead of a year, and a key that nobody had set before."
edit manifests/ledger.yaml "31536000000   # a year" "1000          # a second?!
    segment.ms: 1000"
run 0 kdeclare apply --yes
says "31536000000 (365 d) → 1000 (1 s)"

step "Which run was it?"
run 0 kdeclare history
says "kdeclare apply --yes"

step "Undo it: back to a year, and the other key is unset as it was before."
run 0 kdeclare rollback --yes
says "1000 (1 s) → 31536000000 (365 d)" "(back to the default)" "Rolled back"

step "The manifest is still wrong, and the plan says so."
run 2 kdeclare plan --detailed-exitcode
says "31536000000 (365 d) → 1000 (1 s)"

step "A rollback is a run like any other: it can be undone …"
run 0 kdeclare rollback --yes
says "31536000000 (365 d) → 1000 (1 s)"

step "… and that, too. Now the manifest is corrected as well."
run 0 kdeclare rollback --yes
edit manifests/ledger.yaml "1000          # a second?!
    segment.ms: 1000" "31536000000   # a year"
run 0 kdeclare plan --detailed-exitcode
says "No changes."
run 0 kdeclare history
