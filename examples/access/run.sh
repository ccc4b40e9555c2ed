#!/usr/bin/env bash
# Give a service and a team their access, revoke it, and audit what other clients changed.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
port=${KDECLARE_ACCESS_PORT:-39092}
begin_apart
edit kdeclare.yaml "127.0.0.1:39092" "127.0.0.1:$port"
tidy() { kdeclare sandbox reset --yes --quiet; }
bootstrap=127.0.0.1:$port
export ANALYTICS_PASSWORD=correct-horse
try() { "$@" || true; }
client() { "kafka-$1" "${@:2}" --command-config analytics.properties; }
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
edit manifests/checkout.yaml "  produce: [orders]" "  produce: [orders, 'payments.*']"

step "A new team brings its user, rights and quota in one pull request. Review the plan."
run 0 cp pull-request/analytics.yaml manifests
run 2 kdeclare plan --out pull-request.plan --detailed-exitcode
says "ScramUser/analytics" "(sensitive)" "User:analytics gains READ on topic orders" "limits.consumer_byte_rate"
says_not "$ANALYTICS_PASSWORD"

step "Apply the reviewed plan. A client of the team logs in and reads."
run 0 kdeclare apply pull-request.plan --yes
cp .sandbox/security/reader.properties analytics.properties
edit analytics.properties 'username="reader"' 'username="analytics"'
edit analytics.properties 'password="reader-secret"' "password=\"$ANALYTICS_PASSWORD\""
run 0 kafka-producer-perf-test --topic orders --num-records 10 --record-size 10 --throughput -1 \
  --command-config .sandbox/security/admin.properties
run 0 client console-consumer --topic orders --group analytics-reports --from-beginning --max-messages 10 --timeout-ms 30000
says "Processed a total of 10 messages"

step "Revoke all access while a client is connected. The plan deletes rights before the credential."
client console-consumer --topic orders --group analytics-live --timeout-ms 60000 >live.log 2>&1 &
live=$!
for _ in {1..100}; do
  [[ $(kdeclare group list --in-state Stable --format names) != *analytics-live* ]] || break
  sleep 0.2
done
run 0 rm manifests/analytics.yaml
run 0 kdeclare plan --allow-deletes --graph
in_order "Order of execution" "acls.delete   Acl/analytics" "scram.delete  ScramUser/analytics" "permissions of the user are revoked first"
run 0 kdeclare apply --yes --allow-deletes

step "The connected client loses access at once, although its connection is still open. A new login fails."
wait "$live" || true # it ends with 0 after most errors, too
run 0 cat live.log
says "Not authorized to access"
run 0 try client console-consumer --topic orders --group analytics-reports --timeout-ms 30000
says "uthentication failed"
run 0 kdeclare acl list --principal User:analytics
says "0 ACLs"

step "An audit finds access that was changed outside kdeclare, also of users that no manifest declares."
run 0 kdeclare acl add --allow-principal User:mallory --operation All --topic '*' --yes
run 0 kdeclare acl remove --allow-principal User:checkout --operation Read --topic orders --yes
run 2 kdeclare fleet audit fleet.yaml --out audits --fail-on changed,missing,unmanaged
says "checkout" "User:mallory"
run 0 kdeclare apply --yes
run 0 kdeclare acl remove --allow-principal User:mallory --operation All --topic '*' --yes

step "A policy keeps the team to its own prefixes."
edit manifests/checkout.yaml "  produce: [orders, 'payments.*']" "  produce: [orders, 'payments.*', 'bank.*']"
run 3 kdeclare plan
says "outside the prefixes of checkout"

step "Mistakes that brokers accept in silence are found before a broker is contacted."
edit manifests/checkout.yaml "  principal: User:checkout" "  principal: user:checkout"
run 1 kdeclare validate
says "case-sensitive"
