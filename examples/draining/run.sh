#!/usr/bin/env bash
# Drain a broker in batches under a throttle, and roll the move back.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'draining\..*'

step "Create two topics with two replicas each, on three brokers."
run 0 kdeclare apply --yes

step "Declare that broker 3 must hold none of their replicas."
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
says "throttled to 50 MiB/s per broker" "batches of 4"

step "Apply it; apply waits until all replicas have been moved."
run 0 kdeclare apply --yes
says "1 throttle set" "1 throttle cleared"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Check the result with Kafka's own tool."
run 0 kafka-topics --describe --topic draining.orders
says_not "Replicas: 3," ",3"

step "The throttle has been removed."
run 0 kafka-configs --describe --entity-type topics --entity-name draining.orders
says_not "throttled"

step "Roll back: every replica returns to its earlier broker."
run 0 kdeclare rollback --yes
run 0 kafka-topics --describe --topic draining.orders
rm manifests/drain.yaml
run 0 kdeclare plan --detailed-exitcode
says "No changes."
