#!/usr/bin/env bash
# Raise the replication factor, the partitions and min.insync.replicas at once, in a safe order.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'more-replicas\..*'

step "Create a topic with two replicas."
run 0 kdeclare apply --yes

step "Change three numbers in the manifest."
edit manifests/payments.yaml "partitions: 3" "partitions: 6"
edit manifests/payments.yaml "replicationFactor: 2" "replicationFactor: 3"
edit manifests/payments.yaml "min.insync.replicas: 1" "min.insync.replicas: 2"

step "Show the order of the steps and the reasons."
run 2 kdeclare plan --graph --detailed-exitcode
says "Cannot be rolled back:"
in_order "Order of execution" "partitions.increase" "partitions.reassign" "configs.alter"

step "Apply it; apply waits until all replicas are in sync."
run 0 kdeclare apply --yes
says "3 of 3 operations done"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Go back to two replicas: now min.insync.replicas changes first."
edit manifests/payments.yaml "replicationFactor: 3" "replicationFactor: 2"
edit manifests/payments.yaml "min.insync.replicas: 2" "min.insync.replicas: 1"
run 2 kdeclare plan --graph --detailed-exitcode
in_order "Order of execution" "configs.alter" "partitions.reassign"
run 0 kdeclare apply --yes
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Kafka cannot remove partitions: the change is blocked, and the topic is never re-created."
edit manifests/payments.yaml "partitions: 6" "partitions: 3"
run 3 kdeclare plan
says "invalid-partitions"
