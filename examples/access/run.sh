#!/usr/bin/env bash
# Give a service its rights, revoke one, restore a deleted one, and see what kdeclare refuses.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
port=${KDECLARE_ACCESS_PORT:-39092}
begin_apart
edit kdeclare.yaml "127.0.0.1:39092" "127.0.0.1:$port"
tidy() { kdeclare sandbox reset --yes --quiet; }
may() { kdeclare acl explain --principal User:checkout --operation "$1" --topic "$2"; }

step "Start a broker that authenticates its clients and checks ACLs."
run 0 kdeclare sandbox start --brokers 1 --port "$port" --secure

step "Review the rights of the service: every role is shown as bindings."
run 2 kdeclare plan --detailed-exitcode
says "ALLOW User:checkout WRITE from *" "bindings.topic:payments.*" "DENY User:checkout READ from *"

step "Ask what the service may do, from the manifests alone."
run 3 kdeclare acl explain --principal User:checkout --operation Write --topic payments.secrets --manifests
says "denied by a binding: DENY User:checkout WRITE topic:payments.secrets from *"

step "Apply. Brokers now enforce the rights."
run 0 kdeclare apply --yes
run 0 may Write payments.invoices
run 3 may Write payments.secrets
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Someone deletes a binding. kdeclare sees it, and creates it again."
run 0 kdeclare acl remove --allow-principal User:checkout --operation Read --topic orders --yes
says "is declared in a manifest"
run 2 kdeclare plan --detailed-exitcode
says "changed outside kdeclare" "APPEND"
run 0 kdeclare apply --yes

step "Revoke a right: exactly its binding is deleted."
edit manifests/checkout.yaml "  produce: [orders, 'payments.*']" "  produce: [orders]"
run 2 kdeclare plan --detailed-exitcode
says "bindings.topic:payments.*" "SUBTRACT" "disruptive"
run 0 kdeclare apply --yes
run 3 may Write payments.invoices

step "Roll the revocation back."
run 0 kdeclare rollback --yes
run 0 may Write payments.invoices

step "A policy keeps the team to its own prefixes."
edit manifests/checkout.yaml "  produce: [orders]" "  produce: [orders, 'payments.*', 'bank.*']"
run 3 kdeclare plan
says "outside the prefixes of checkout"

step "Mistakes that brokers accept in silence are found before a broker is contacted."
edit manifests/checkout.yaml "  principal: User:checkout" "  principal: user:checkout"
run 1 kdeclare validate
says "case-sensitive"
