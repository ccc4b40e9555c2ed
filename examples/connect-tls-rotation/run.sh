#!/usr/bin/env bash
# New certificates for two Connect workers that go on running: checked by all of them, sent once, seen in handshakes.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../steps.sh"
port=${KDECLARE_CONNECT_PORT:-29092}
begin_apart
edit kdeclare.yaml "127.0.0.1:29092" "127.0.0.1:$port"
for number in 0 1; do
  edit manifests/workers.yaml "127.0.0.1:$((29142 + number))" "127.0.0.1:$((port + 50 + number))"
done
tidy() { kdeclare sandbox reset --yes --quiet; }

# A new key and certificate for a worker, signed by the sandbox's authority, as somebody's certificate service does it.
issue() {
  local store=.sandbox/connect/workers/$1/$2.p12
  cp .sandbox/connect/ca.p12 "$store"
  keytool -genkeypair -alias worker -signer ca -keyalg EC -groupname secp256r1 -dname "CN=worker-$1 $2" \
    -ext san=ip:127.0.0.1,dns:localhost -ext eku=serverAuth,clientAuth -validity 90 \
    -keystore "$store" -storepass kdeclare-sandbox
  keytool -delete -alias ca -keystore "$store" -storepass kdeclare-sandbox
}

step "A broker and two workers with HTTPS; kdeclare's plug-in is in them."
run 0 kdeclare sandbox start --brokers 1 --connect-workers 2 --port "$port"

step "What they show now."
run 0 kdeclare connect worker-config status
says "CN=worker-1" "CN=worker-2"

step "New keystores, on one worker only; the manifest is changed already."
run 0 issue 1 next
edit manifests/workers.yaml "  config: {}" '  config:
    listeners.https.ssl.keystore.location: ${env:WORKER_FOLDER}/next.p12'
run 1 kdeclare plan
says "127.0.0.1:$((port + 51))" "next.p12"

step "Nothing can be written as long as one worker could not follow. Now it can."
run 0 issue 2 next
run 0 kdeclare plan
says "listeners.https.ssl.keystore.location"

step "One change, and every worker is waited for."
run 0 kdeclare apply --yes
run 0 kdeclare connect worker-config status
says "CN=worker-1 next" "CN=worker-2 next"
run 0 kdeclare plan --detailed-exitcode
says "No changes."

step "And back: the workers' own files hold again."
run 0 kdeclare rollback --yes
run 0 kdeclare connect worker-config status
says "CN=worker-1" "CN=worker-2"
says_not "next"
