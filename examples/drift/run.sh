#!/usr/bin/env bash
# A saved plan meets a cluster that somebody has changed in the meantime.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'drift\..*'

step "Two topics."
run 0 kdeclare apply --yes

step "A change is planned and saved for review."
edit manifests/topics.yaml "retention.ms: 604800000" "retention.ms: 86400000"
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "604800000 (7 d) → 86400000 (1 d)" "Saved as it.plan"

step "Meanwhile somebody else changes the same topic by hand."
run 0 kafka-configs --alter --topic drift.sessions --add-config retention.ms=3600000

step "The plan no longer holds. Nothing is applied, not even in part."
run 4 kdeclare apply it.plan --yes
says "drift.sessions" "604800000" "3600000"

step "A new plan shows what was done outside of kdeclare, and apply puts it right."
run 2 kdeclare plan --out it.plan --detailed-exitcode
says "changed outside kdeclare" "3600000 (1 h) → 86400000 (1 d)"

step "Somebody changes the other topic: that is no concern of this plan."
run 0 kafka-configs --alter --topic drift.logins --add-config retention.ms=3600000
run 0 kdeclare apply it.plan --yes
run 0 kdeclare plan --detailed-exitcode
says "No changes." "drift.logins  retention.ms"

step "A plan is applied once."
run 4 kdeclare apply it.plan --yes
