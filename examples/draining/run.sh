#!/usr/bin/env bash
# A broker gives its replicas to the others: in batches, throttled, and back again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'draining\..*'

step "Two topics of two replicas each, on three brokers."
run 0 kdeclare apply --yes

step "Broker 3 is to hold none of their replicas."
cat >manifests/drain.yaml <<'YAML'
apiVersion: kdeclare/v1
kind: Reassignment
metadata: {name: drain-broker-3}
spec:
  topics: ['/draining\..*/']
  drain: [3]
YAML
run 2 kdeclare plan --graph --detailed-exitcode
in_order "Order of execution" "throttle.set" "partitions.reassign" "throttle.clear"
says "throttled to 50 MiB/s a broker" "batches of 4"

step "Do it; apply waits until everything has arrived."
run 0 kdeclare apply --yes
says "1 throttle set" "1 throttle cleared"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "What does Kafka's own tool say?"
run 0 kafka-topics --describe --topic draining.orders
says_not "Replicas: 3," ",3"

step "Nothing of the throttle is left."
run 0 kafka-configs --describe --entity-type topics --entity-name draining.orders
says_not "throttled"

step "Undo it: every replica goes back to where it was."
run 0 kdeclare rollback --yes
run 0 kafka-topics --describe --topic draining.orders
rm manifests/drain.yaml
run 0 kdeclare plan --detailed-exitcode
says "No changes."
