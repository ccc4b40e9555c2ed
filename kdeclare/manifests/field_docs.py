"""Descriptions of the fields of kdeclare's own documents, which editors show next to each field.

The specs of providers contain their own descriptions (Pydantic's ``Field(description=...)``). A test checks
that no description is missing or unused.
"""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from kdeclare.manifests.defaults import DefaultsSpec
from kdeclare.manifests.document_models import Envelope

_ENVELOPE_DOCS = {
    "apiVersion": "The group and version of the kind: kdeclare/v1, or the group and version of a provider.",
    "kind": "The kind of the resource or rule that the document declares.",
    "metadata": "The name, the owner and the labels of the resource or rule.",
    "spec": "The declared fields of the resource or rule, which depend on the kind.",
    "forEach": "A list, a mapping, the path of a YAML or JSON file, or ${var.NAME}. One manifest is "
    "generated for each item, with ${each.key}, ${each.value} and ${each.value.FIELD}.",
}
_POLICY_DOCS = {
    "severity": "deny blocks changes that violate the policy; warn only reports them.",
    "actions": "The actions for which the policy is evaluated (default: all).",
    "selector": "The resources that the policy checks (default: all topics).",
}
_CLUSTER_DOCS = {
    "bootstrapServers": "Addresses of brokers to connect to: HOST:PORT, separated by commas.",
    "clientConfig": "Kafka client properties, such as security.protocol. Write secrets as ${env.NAME} or "
    "${file.PATH}.",
    "clientConfigFile": "The path of a file with Kafka client properties, as an alternative to clientConfig.",
    "variables": "Values for ${var.NAME}.",
    "overlays": "Files or folders with overlays. Each overlay is merged over the manifest with the same kind "
    "and name, in the order of this list.",
}

_DEFAULTS_DOCS = {
    "kind": "The kind of the resources that these defaults apply to.",
    "selector": "The resources of that kind to which the defaults apply (default: all).",
    "priority": "If several Defaults set the same field, the highest priority takes precedence (default: 0).",
    "defaults": "Values for fields that neither the manifest nor an overlay of the resource sets.",
}

_NAME_DOC = "Names, or regular expressions (RE2) between slashes that match whole names"

FIELD_DOCS: Mapping[str, Mapping[str, str]] = {
    "Metadata": {
        "name": "For a Topic, the topic's name; for a BrokerConfig, a broker id or cluster-default.",
        "labels": "Your own key-value pairs, for --selector and for policies; Kafka never sees them.",
    },
    "ManifestMetadata": {
        "owner": "The team or person that answers questions about the resource; sets the label 'team'.",
        "description": "What the resource is for, in a sentence.",
        "only": "The environments in which the manifest is loaded (default: all).",
        "except": "The environments in which the manifest is not loaded.",
    },
    "PolicySpec": {
        "rule": "A CEL expression over action, topic, principal, labels, changed, pre and post. For kinds "
        "other than Topic, use resource, before and after instead of topic, pre and post. If the expression "
        "is false, the change violates the policy.",
        "message": "The message for a violation (default: the text of the rule).",
        **_POLICY_DOCS,
    },
    "SelectorSpec": {"kind": "The kind of the resources that the policy checks (default: Topic)."},
    "DefaultsSelector": {
        "names": "Names of resources, or regular expressions (RE2) between slashes that match whole names.",
        "labels": "The labels that the manifest of a resource must have.",
    },
    "PolicyTestSpec": {
        "defaults": "Default values for the fields of all requests.",
        "cases": "The test cases: requests and the expected results of the policies.",
    },
    "CaseSpec": {
        "name": "The name of the case.",
        "policy": "The policy under test (default: all policies of the project).",
        "request": "The requested change.",
        "expect": "The expected result: allow, warn or deny.",
        "message": "The message that a policy is expected to report.",
        "asked": "Whether the case requires that a policy is evaluated (default: true if 'policy' is set).",
    },
    "RequestSpec": {
        "kind": "The kind of the resource that the request changes (default: Topic).",
        "action": "CREATE, MODIFY or DELETE.",
        "topic": "The topic's name.",
        "principal": "The principal that makes the request, for example User:alice.",
        "labels": "The labels of the topic's manifest.",
        "labelsBefore": "The labels of the topic's manifest when the topic was last applied.",
        "changed": "The changed fields (default: the fields that differ between pre and post).",
        "pre": "The topic before the change; omit it if the action is CREATE.",
        "post": "The topic after the change; omit it if the action is DELETE.",
        "racks": "The rack of each broker, by broker id.",
        "records": "The number of records in the topic.",
        "partitionsOf": "The total partition count, after the change, of all topics with these labels, for "
        "example {team=blue: 12}.",
        "impact": "What the change means for the records, consumers and producers of the topic.",
    },
    "ImpactSpec": {
        "records": "The number of records of the topic, or 'unknown'.",
        "bytes": "The size of the topic in bytes, or 'unknown'.",
        "deletedRecords": "The largest number of records that the change can delete, or 'unknown'.",
        "deletedBytes": "The largest number of bytes that the change can delete, or 'unknown'.",
        "unreadRecords": "The number of records that the change can delete and that at least one group has "
        "not read, or 'unknown'.",
        "unreadGroups": "The consumer groups that have not read all records that the change can delete, or "
        "'unknown'.",
        "activeConsumers": "The number of group members that have partitions of the topic, or 'unknown'.",
        "activeGroups": "The consumer groups whose members have partitions of the topic, or 'unknown'.",
        "activeProducers": "The number of producers that wrote within the last hour or have an open "
        "transaction, or 'unknown'.",
        "lastWriteMs": "The timestamp of the newest record in milliseconds since 1970, or 'unknown'; null "
        "if the topic has no records.",
    },
    "StateSpec": {
        "partitions": "The number of partitions.",
        "replicationFactor": "The number of replicas of each partition.",
        "assignments": "For each partition, the ids of the brokers that hold its replicas.",
        "configs": "The topic's config overrides.",
    },
    "ProjectSpec": {
        "manifests": "Files or folders with manifests, or patterns such as teams/**/topics-*.yaml, relative "
        "to this file (default: manifests).",
        "state": "The folder of the state, relative to this file, or a URI (default: state).",
        "defaultEnvironment": "The environment to use without --env.",
        "environments": "The clusters that the manifests apply to, by environment name.",
        "policies": "Policies that are Python classes, with their settings.",
        "variables": "The variables of the project, with their types, defaults and descriptions, for "
        "${var.NAME}. If this field is set, an environment cannot set other variables.",
        "references": "The allowed ${env.NAME} and ${file.PATH} references (default: all; in CI jobs: none).",
        "onDenied": "What apply does if a policy or a guard denies a change: continue (default) applies the "
        "allowed changes, stop applies nothing.",
        "scope": "The names that the project may declare, change or import, by kind: names, or regular "
        "expressions (RE2) between slashes that match whole names. A kind without an entry is not limited.",
        "signatures": "Whether plans must be signed, and the keys that may sign them.",
        "adoption": "explicit (default): an existing resource that differs from its manifest and was never "
        "applied needs --adopt or lifecycle.adopt. automatic: such a resource is adopted and changed.",
    },
    "SignaturesSpec": {
        "required": "Whether apply and fleet apply accept only plan files that are signed with a trusted "
        "key (default: false). A value in an environment replaces the value of the project.",
        "keys": "Trusted public keys, such as 'ssh-ed25519 AAAA… name', or lines of an OpenSSH allowed "
        "signers file.",
        "files": "Files with trusted keys, relative to this file: public keys in OpenSSH format, Ed25519 "
        "public keys in PEM format, or OpenSSH allowed signers files.",
    },
    "VariableSpec": {
        "type": "The type of every value (default: any). A duration is a string such as 7d, or a number of "
        "milliseconds; a size is a string such as 50MiB, or a number of bytes.",
        "default": "The value in environments and commands that do not set the variable.",
        "description": "What the variable is for.",
    },
    "ReferencesSpec": {
        "env": "The environment variables that references can use: names, or prefixes such as KAFKA_*.",
        "files": "The files and folders that references can use, relative to this file. A folder includes "
        "its subfolders.",
    },
    "EnvironmentSpec": {
        "manifests": "Further files or folders with manifests, or patterns, which are loaded only in this "
        "environment.",
        "clusterId": "The id of the cluster. If it is set, kdeclare refuses to use a cluster with another "
        "id.",
        "signatures": "Whether plans of this environment must be signed, and the keys that may sign them.",
        "requestDeadline": "The maximum time that brokers need for a request that has no timeout, such as a "
        "config change (default: 90s). If such a request receives no response, kdeclare waits this "
        "long before it reports that the request had no effect.",
        "providers": "Connection settings of systems other than Kafka, by provider name.",
        **_CLUSTER_DOCS,
    },
    "PolicyEntrySpec": {
        "name": "The name of the policy in verdicts.",
        "class": "The import path of the class: module.path:ClassName.",
        "config": "The settings of the policy.",
        **_POLICY_DOCS,
    },
    "FleetSpec": {
        "maxConcurrentClusters": "The maximum number of clusters to read at the same time.",
        "rollout": "The order in which the clusters are changed.",
        "manifestUrl": "The URL for links to manifests in audit reports. {path} stands for the path of the "
        "manifest, relative to the fleet file, and {line} for the line.",
        "reportUrl": "The URL for links to the audit report in notifications, such as the page of a CI job. "
        "{audit_id} stands for the id of the audit. The URL can contain references.",
        "notifications": "The webhooks to which 'kdeclare fleet notify' sends messages about audits.",
        "unused": "Report topics that no group reads and no client writes to. This needs more requests "
        "and permissions for each cluster.",
        "acceptedDrift": "Files or folders with documents of kind AcceptedDrift.",
        "clusters": "The clusters of the fleet.",
    },
    "UnusedSpec": {
        "after": "How long ago the last write must be, such as 90d (at most 365d).",
    },
    "AcceptedDriftSpec": {
        "reason": "Why the drift is accepted. Reports show this reason.",
        "owner": "The team or person that answers questions about the drift.",
        "expires": "The last day on which the drift is accepted (UTC), in quotes: '2027-01-31'.",
        "clusters": f"{_NAME_DOC} (default: all clusters).",
        "resources": "The resources or unmanaged objects whose drift is accepted.",
        "fields": f"The paths of fields, such as configs.retention.ms. {_NAME_DOC} (default: all findings "
        "about the resources).",
        "findings": "The kinds of findings (default: all except unreachable).",
    },
    "AcceptedResources": {
        "kind": "The kind of the resources.",
        "names": _NAME_DOC + ".",
    },
    "NotificationSpec": {
        "name": "The name of the notification, under which kdeclare records what was sent.",
        "format": "slack, teams: a message for the webhook of a channel. json: the findings as JSON. "
        "template: your own text.",
        "url": "The URL of the webhook, as a reference: ${env.NAME} or ${file.PATH}. It is a secret.",
        "headers": "HTTP headers for every request. Use references as values, as in ${env.TOKEN}.",
        "events": "What causes a message: new findings, fixed findings, or every audit (always).",
        "where": "Send only findings that meet one of these conditions, such as 'severity>=high, age>7d' "
        "(default: all findings).",
        "team": "Send only findings about resources whose label 'team' has this value.",
        "template": "The text of the message, with values in braces, such as {headline}.",
        "contentType": "The media type of messages from a template (default: application/json).",
        "caFile": "A PEM file with the CA certificates that verify the server (default: those of the "
        "system).",
        "allowHttp": "Whether messages may be sent to another host without encryption.",
    },
    "RolloutSpec": {
        "canary": "The labels of the clusters that are changed first.",
        "batchSize": "The number of clusters to change at a time after the canaries.",
        "maxFailures": "The number of failed clusters that are tolerated. If more clusters fail, no "
        "further plans are applied. A canary that does not complete always stops the rollout.",
        "health": "What must be healthy before each wave.",
    },
    "RolloutHealthSpec": {
        "checks": "For each health check, such as offline-partitions, the largest number that counts as "
        "healthy.",
        "command": "A command and its arguments, which must succeed before each wave. It runs in the folder "
        "of the fleet file.",
        "timeout": "How long to wait until the clusters are healthy.",
    },
    "ClusterSpec": {
        "providers": "Connection settings of systems other than Kafka, by provider name.",
        "name": "The name of the cluster in reports.",
        "labels": "Your own key-value pairs, for --cluster-selector and for the rollout.",
        "project": "The project file that defines the cluster in one of its environments.",
        "env": "The environment of the project (default: the default environment).",
        "manifests": "The files or folders with manifests, if the cluster has no project.",
        "state": "The folder or URI of the cluster's state.",
        "selector": "The labels that a resource must have to be used for this cluster.",
        **_CLUSTER_DOCS,
    },
}


_OF_PROVIDERS = "kdeclare.providers."


def find_field_doc(model: type[BaseModel], name: str) -> str | None:
    """Return the description of a field of a model, or None if this module does not describe the field.

    Only models of kdeclare are described. Models of other packages can have the same class names.
    """
    docs = (words[name] for words in _find_docs(model) if name in words)
    return next(docs, None)


def _find_docs(model: type[BaseModel]) -> Iterator[Mapping[str, str]]:
    if issubclass(model, DefaultsSpec):
        yield _DEFAULTS_DOCS
    for base in model.__mro__:
        module = f"{base.__module__}."
        if module.startswith("kdeclare.") and not module.startswith(_OF_PROVIDERS):
            yield FIELD_DOCS.get(base.__name__, {})
    if issubclass(model, Envelope):
        yield _ENVELOPE_DOCS
