#!/usr/bin/env bash
# Limit users, client ids and addresses, and keep the limits that others set.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'quotas\..*'

user=(--entity-type users --entity-name quotas-checkout)
tidy() {
  empty_project &&
    kafka-configs --alter "${user[@]}" --delete-config request_percentage >"$work/log" || { cat "$work/log" >&2; return 1; }
}

step "Apply four quotas; each is one entry of one request."
run 2 kdeclare plan --detailed-exitcode
says "limits.producer_byte_rate" "ClientQuota/checkout-reports" "disruptive"
run 0 kdeclare apply --yes
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Kafka's own tool shows them."
run 0 kafka-configs --describe --entity-type users --entity-name quotas-checkout
says "producer_byte_rate=1.048576E7" "controller_mutation_rate=2.5"

step "Another client sets another limit on the same user. That limit stays."
run 0 kafka-configs --alter "${user[@]}" --add-config request_percentage=400
run 0 kdeclare plan --detailed-exitcode
says "No changes." "request_percentage"

step "Another client changes a declared limit. This is drift, and apply reverts it."
run 0 kafka-configs --alter "${user[@]}" --add-config producer_byte_rate=1000
run 2 kdeclare plan --detailed-exitcode
says "changed outside kdeclare"
run 0 kdeclare apply --yes

step "Raise a limit, and roll the run back."
edit manifests/quotas.yaml "connection_creation_rate: 100" "connection_creation_rate: 200"
run 0 kdeclare apply --yes
run 0 kdeclare rollback --yes
run 0 kafka-configs --describe --entity-type ips --entity-name 192.0.2.10
says "connection_creation_rate=100.0"

step "A limit that is removed from the manifest is removed from the cluster."
edit manifests/quotas.yaml "    controller_mutation_rate: 2.5" ""
run 2 kdeclare plan --detailed-exitcode
says "limits.controller_mutation_rate" "DELETE"

step "An error is found before a broker is contacted."
edit manifests/quotas.yaml "    producer_byte_rate: 50MiB" "    producer_byterate: 50MiB"
run 1 kdeclare validate
says "Did you mean 'producer_byte_rate'?"
