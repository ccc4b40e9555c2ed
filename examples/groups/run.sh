#!/usr/bin/env bash
# Declare configs of a group and a metrics subscription, and keep what others set.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'groups\..*'

group=(--entity-type groups --entity-name groups-checkout)
metrics=(--entity-type client-metrics --entity-name groups-producers)
tidy() {
  empty_project &&
    kafka-configs --alter "${group[@]}" --delete-config share.isolation.level >"$work/log" || { cat "$work/log" >&2; return 1; }
}

step "Apply the configs of a group, and a subscription to client metrics."
run 2 kdeclare plan --detailed-exitcode
says "GroupConfig/groups-checkout" "ClientMetrics/groups-producers" "disruptive"
run 0 kdeclare apply --yes
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Kafka's own tool shows them."
run 0 kafka-configs --describe "${group[@]}"
says "consumer.session.timeout.ms=60000"
run 0 kafka-configs --describe "${metrics[@]}"
says "metrics=org.apache.kafka.producer." "match=client_id=checkout-.*" "interval.ms=30000"

step "Another client sets another config on the same group. That config stays."
run 0 kafka-configs --alter "${group[@]}" --add-config share.isolation.level=read_committed
run 0 kdeclare plan --detailed-exitcode
says "No changes." "share.isolation.level"

step "Another client changes the subscription. This is drift, and apply reverts it."
run 0 kafka-configs --alter "${metrics[@]}" --add-config interval.ms=1000
run 2 kdeclare plan --detailed-exitcode
says "changed outside kdeclare"
run 0 kdeclare apply --yes

step "Collect more metrics, and roll the run back."
edit manifests/groups.yaml "[org.apache.kafka.producer.]" "[org.apache.kafka.producer., org.apache.kafka.consumer.]"
run 0 kdeclare apply --yes
run 0 kdeclare rollback --yes
run 0 kdeclare config describe --client-metrics groups-producers
says "org.apache.kafka.producer."
says_not "org.apache.kafka.consumer."

step "The limits of the brokers are checked before anything changes."
edit manifests/groups.yaml "timeout.ms: 60000" "timeout.ms: 600000"
run 1 kdeclare plan
says "group.consumer.max.session.timeout.ms"

step "An error is found before a broker is contacted."
edit manifests/groups.yaml "consumer.session.timeout.ms: 600000" "consumer.session.timeout: 60000"
run 1 kdeclare validate
says "Did you mean 'consumer.session.timeout.ms'?"
