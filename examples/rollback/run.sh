#!/usr/bin/env bash
# Roll back a mistake, roll back the rollback, and correct the manifests.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'rollback\..*'

step "Apply the ledger topic with a retention of one year."
run 0 kdeclare apply --yes

step "Make a mistake: a second instead of a year, and a key that was unset before."
edit manifests/ledger.yaml "31536000000   # a year" "1000          # a second?!
    segment.ms: 1000"
run 0 kdeclare apply --yes
says "31536000000 (365 d) → 1000 (1 s)"

step "Find the run."
run 0 kdeclare history
says "kdeclare apply --yes"

step "Roll it back: the retention is a year again, and the other key is unset again."
run 0 kdeclare rollback --yes
says "1000 (1 s) → 31536000000 (365 d)" "(back to the default)" "Rolled back"

step "The manifest still has the mistake, so the plan repeats it."
run 2 kdeclare plan --detailed-exitcode
says "31536000000 (365 d) → 1000 (1 s)"

step "A rollback is a run, so it can be rolled back …"
run 0 kdeclare rollback --yes
says "31536000000 (365 d) → 1000 (1 s)"

step "… and that rollback, too. Now correct the manifest as well."
run 0 kdeclare rollback --yes
edit manifests/ledger.yaml "1000          # a second?!
    segment.ms: 1000" "31536000000   # a year"
run 0 kdeclare plan --detailed-exitcode
says "No changes."
run 0 kdeclare history
