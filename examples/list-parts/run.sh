#!/usr/bin/env bash
# Put elements into lists that others write to as well, and take only those out again.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
begin 'list-parts\..*'

step "The manifest says that 'compact' is to be part of the cleanup policy, next to whatever is there."
run 0 kdeclare apply --yes
says "1 topic created"

step "Somebody else throttles a replica, for a move of their own."
run 0 kafka-configs --alter --topic list-parts.clicks \
  --add-config 'leader.replication.throttled.replicas=[1:2]'

step "That is none of our business."
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "We throttle one, too: only our element is appended."
edit manifests/clicks.yaml "{append: [compact]}" "{append: [compact]}
    leader.replication.throttled.replicas: {append: ['0:1']}"
run 0 kdeclare apply --yes
says "APPEND" "[1:2] → [1:2, 0:1]  +0:1"

step "We are done with it: only our element is taken out, theirs stays."
edit manifests/clicks.yaml "    leader.replication.throttled.replicas: {append: ['0:1']}" ""
run 0 kdeclare apply --yes
says "SUBTRACT" "[1:2, 0:1] → [1:2]  -0:1"
says_not "DELETE"
run 0 kafka-configs --describe --topic list-parts.clicks
says "leader.replication.throttled.replicas=1:2 "

step "There is nothing left to do; theirs is shown and left alone."
run 0 kdeclare plan --detailed-exitcode
says "No changes." "Set on declared resources, neither declared nor owned, left alone:"

step "What is no list takes no parts; that is said before any broker is asked."
edit manifests/clicks.yaml "cleanup.policy: {append: [compact]}" "compression.type: {append: [zstd]}"
run 1 kdeclare validate
says "manifests/clicks.yaml:10:"
