#!/usr/bin/env bash
# Add a topic, its schema, a user, access, a quota and two connectors in one plan, change them, and roll back.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
port=${KDECLARE_PIPELINE_PORT:-39092}
begin_apart
edit kdeclare.yaml "127.0.0.1:39092" "127.0.0.1:$port"
edit kdeclare.yaml "127.0.0.1:39142" "127.0.0.1:$((port + 50))"
edit kdeclare.yaml "127.0.0.1:39132" "127.0.0.1:$((port + 40))"
edit kdeclare.yaml "/srv/pipeline" "$PWD"
tidy() { kdeclare sandbox reset --yes --quiet; }
export CHECKOUT_PASSWORD=correct-horse

# Wait until a file has a number of lines. The connectors read and write lines.
wait_for_lines() {
  local count
  for _ in {1..150}; do
    count=$(grep -c '' "$2" 2>/dev/null || true)
    (( ${count:-0} < $1 )) || break
    sleep 0.2
  done
  printf '%s lines in %s\n' "$count" "$2"
  (( count == $1 ))
}

# Set the compatibility of a subject with a request to the registry.
set_compatibility() {
  python3 - "http://127.0.0.1:$((port + 40))/apis/ccompat/v7/config/$1" "{\"compatibility\": \"$2\"}" <<'END'
import sys
import urllib.request
url, body = sys.argv[1:]
headers = {"Content-Type": "application/json"}
urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers, method="PUT"), timeout=30).close()
END
}

step "Start a broker that checks ACLs, a Connect worker and a schema registry."
run 0 kdeclare sandbox start --brokers 1 --port "$port" --secure --connect-workers 1 --registry
run 0 kdeclare apply --yes
seq -f 'order %g' 1 500 >in.txt

step "A team adds a topic and all that belongs to it in one pull request. Review the plan."
run 0 cp pull-request/orders.yaml pull-request/orders.avsc manifests
run 2 kdeclare plan --graph --detailed-exitcode --out pull-request.plan
says "Topic/orders" "Schema/orders-value" "ScramUser/checkout" "ClientQuota/checkout" "Connector/orders-sink" \
  "User:checkout gains WRITE on topic orders"
in_order "Order of execution" "topic.create" "schema.compatibility" "connector.create"
says_not "$CHECKOUT_PASSWORD"

step "Apply the reviewed plan. All lines arrive at the other end."
run 0 kdeclare apply pull-request.plan --yes
says "1 topic created" "2 connectors created" "1 schema registered"
run 0 wait_for_lines 500 out.txt
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "Someone changes all systems outside kdeclare: the topic, the quota, the access, the sink and the schema."
run 0 kdeclare config alter --topic orders --add-config retention.ms=3600000 --yes
run 0 kdeclare config alter --user checkout --add-config producer_byte_rate=1024 --yes
run 0 kdeclare acl remove --allow-principal User:checkout --operation Write --topic orders --yes
run 0 kdeclare connector pause orders-sink --yes
run 0 set_compatibility orders-value NONE

step "One audit finds the changes in the brokers, the Connect workers and the schema registry, and one apply reverts them."
run 2 kdeclare fleet audit fleet.yaml --out audits --fail-on changed
says "retention.ms" "producer_byte_rate" "Acl/checkout" "Connector/orders-sink" "compatibility"
run 0 kdeclare apply --yes
run 0 kdeclare fleet audit fleet.yaml --out audits --fail-on changed

step "An incompatible schema is an error of the plan, at its file."
cp manifests/orders.avsc compatible.avsc
edit manifests/orders.avsc '"type": "int"' '"type": "string"'
run 1 kdeclare plan
says "orders.avsc:1:1" "schema.Order.amount" "is not BACKWARD compatible"
cp compatible.avsc manifests/orders.avsc

step "A compatible schema and a new output file: one plan. No record is lost."
edit manifests/orders.avsc '"type": "int"}' '"type": "int"}, {"name": "note", "type": "string", "default": ""}'
edit manifests/orders.yaml 'out.txt' 'more.txt'
run 0 kdeclare apply --yes
says "field 'note' of record shop.Order added" "1 connector configured" "1 schema registered"
seq -f 'order %g' 501 800 >>in.txt
run 0 wait_for_lines 300 more.txt
run 0 wait_for_lines 500 out.txt

step "The old schema cannot come back by itself: the registry would answer with the old version."
cp compatible.avsc manifests/orders.avsc
run 1 kdeclare plan
says "the same schema as version 1 of subject"

step "A rollback undoes the change: the new version is deleted, and the sink writes to the first file again."
edit manifests/orders.yaml 'more.txt' 'out.txt'
run 0 kdeclare rollback --yes
says "1 connector configured" "1 schema deleted"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "The team leaves. Connectors go before the access and the topic that they use."
run 0 rm manifests/orders.yaml manifests/orders.avsc
run 0 kdeclare plan --allow-deletes --graph
in_order "Order of execution" "connector.delete" "topic.delete"
run 0 kdeclare apply --yes --allow-deletes --max-deletes 100%
run 0 kdeclare plan --detailed-exitcode
says "No changes."
