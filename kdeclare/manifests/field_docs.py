"""What each field of kdeclare's own documents is for, as editors show it beside the field.

Specs of providers describe their fields themselves (pydantic's ``Field(description=...)``). That none is
missing and none is left over is tested.
"""

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from kdeclare.manifests.defaults import DefaultsSpec
from kdeclare.manifests.document_models import Envelope

_ENVELOPE_DOCS = {
    "apiVersion": "The group and version of the kind: kdeclare/v1, or that of another provider.",
    "kind": "What the document declares.",
    "metadata": "Name and labels.",
    "spec": "What is declared.",
}
_POLICY_DOCS = {
    "severity": "deny blocks what violates the policy, warn only says so.",
    "actions": "Which actions on resources the policy is asked about (default: all).",
    "selector": "Which resources the policy is asked about (default: all topics).",
}
_CLUSTER_DOCS = {
    "bootstrapServers": "Where to find the brokers: HOST:PORT, several with commas.",
    "clientConfig": "Kafka client properties, as security.protocol. Secrets by ${env.NAME} or ${file.PATH}.",
    "clientConfigFile": "A file of Kafka client properties, in place of clientConfig.",
    "variables": "Values for ${var.NAME}.",
    "overlays": "Files or folders of manifests that merge over those of the same kind and name, in order.",
}

_DEFAULTS_DOCS = {
    "kind": "The kind of the resources that this is for.",
    "selector": "Which of them (default: all).",
    "priority": "Who wins where several say something: the higher number (default: 0).",
    "defaults": "What they have where neither their manifests nor overlays say it.",
}

FIELD_DOCS: Mapping[str, Mapping[str, str]] = {
    "Metadata": {
        "name": "Of a Topic, the topic's name; of a BrokerConfig, a broker's id or cluster-default.",
        "labels": "Words of your own, for --selector and for policies; Kafka never sees them.",
    },
    "PolicySpec": {
        "rule": "In CEL, over action, topic, principal, labels, changed, pre and post; of other kinds "
        "resource, before and after. False is a violation.",
        "message": "What is said of a violation (default: the rule itself).",
        **_POLICY_DOCS,
    },
    "SelectorSpec": {"kind": "The kind of the resources (default: Topic)."},
    "DefaultsSelector": {
        "names": "Names, or regular expressions (RE2) between slashes that match whole names.",
        "labels": "Labels that the manifest must all have.",
    },
    "PolicyTestSpec": {
        "defaults": "What the requests of all cases have in common.",
        "cases": "Requests, and what is expected of the policies.",
    },
    "CaseSpec": {
        "name": "What the case is called.",
        "policy": "The policy that it is about (default: all of the project's).",
        "request": "What somebody asks for.",
        "expect": "What comes out: allow, warn or deny.",
        "message": "What a policy must say.",
        "asked": "Whether the named policy is asked at all.",
    },
    "RequestSpec": {
        "kind": "The kind of what the request is about (default: Topic).",
        "action": "CREATE, MODIFY or DELETE.",
        "topic": "The topic's name.",
        "principal": "Who asks, as in User:alice.",
        "labels": "The labels of the topic's manifest.",
        "labelsBefore": "The labels that it had when it was last applied.",
        "changed": "What the request is about; without it, what the states differ in.",
        "pre": "The topic as it is; of a creation there is none.",
        "post": "The topic as it will be; of a deletion there is none.",
        "racks": "The rack of each broker, by its id.",
        "records": "How many records the topic holds.",
        "partitionsOf": "How many partitions all topics with these labels have then, as in {team=blue: 12}.",
    },
    "StateSpec": {
        "partitions": "How many partitions.",
        "replicationFactor": "How many replicas each of them has.",
        "assignments": "The brokers of each partition.",
        "configs": "The topic's overrides.",
    },
    "ProjectSpec": {
        "manifests": "Files or folders with manifests, relative to this file (default: manifests).",
        "state": "The folder that keeps the state, relative to this file, or a URI (default: state).",
        "defaultEnvironment": "The environment without --env.",
        "environments": "The clusters that the manifests are for, by name.",
        "policies": "Policies that are classes, and what they are told.",
        "references": "Which ${env.NAME} and ${file.PATH} may be resolved (default: all; in CI, none).",
        "scope": "The names that the project may declare, change or import, by kind: names, or regular "
        "expressions (RE2) between slashes that match whole names. A kind without an entry is not limited.",
        "adoption": "explicit (default): what exists, differs and was never applied needs --adopt "
        "or lifecycle.adopt. automatic: it is taken over and changed.",
    },
    "ReferencesSpec": {
        "env": "Environment variables, by name or by prefix (KAFKA_*).",
        "files": "Files, or folders with all that is in them, relative to this file.",
    },
    "EnvironmentSpec": {
        "requestDeadline": "How long brokers may work on a request that carries no timeout of its own, "
        "such as one that changes configs (90s). Until then kdeclare does not say that it had no effect.",
        "providers": "How the systems of further providers are reached, by the provider's name.",
        **_CLUSTER_DOCS,
    },
    "PolicyEntrySpec": {
        "name": "What the policy is called in verdicts.",
        "class": "Where the class is: module.path:ClassName.",
        "config": "The settings of the policy.",
        **_POLICY_DOCS,
    },
    "FleetSpec": {
        "maxConcurrentClusters": "How many clusters are read at once.",
        "rollout": "In which order the clusters are changed.",
        "clusters": "The clusters of the fleet.",
    },
    "RolloutSpec": {
        "canary": "The labels of the clusters that are changed first.",
        "batchSize": "How many clusters are changed at a time after that.",
        "maxFailures": "How many clusters may fail before nothing more is begun. "
        "A canary that is not done always stops it.",
    },
    "ClusterSpec": {
        "name": "What the cluster is called in reports.",
        "labels": "Words of your own, for --cluster-selector and for the rollout.",
        "project": "A project file; the cluster is that of its environment.",
        "env": "Which environment of that project.",
        "manifests": "Files or folders with manifests, where there is no project.",
        "state": "The folder or URI of the cluster's state.",
        "selector": "Only resources with all these labels.",
        **_CLUSTER_DOCS,
    },
}


_OF_PROVIDERS = "kdeclare.providers."


def find_field_doc(model: type[BaseModel], name: str) -> str | None:
    """Return what a field of a model is for; None for one that is not described here.

    Classes count and not their names, which classes of other packages can have, too.
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
