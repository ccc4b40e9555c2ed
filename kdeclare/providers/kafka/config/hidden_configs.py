"""Plan resources whose configs the cluster hides from kdeclare, and report the hidden configs."""

from collections.abc import Sequence

from kdeclare.core.diagnostics import Diagnostic, denied, warning
from kdeclare.core.live.faults import Fault
from kdeclare.core.resources.ids import ResourceId
from kdeclare.core.resources.kind import DesiredResource, Difference, ResourceComparison
from kdeclare.core.resources.owned_record import OwnedRecord
from kdeclare.core.units import format_count
from kdeclare.providers.kafka.collector import KafkaSelection, explain_refusal
from kdeclare.providers.kafka.error_names import UNSUPPORTED_VERSION
from kdeclare.providers.kafka.ids import ConfigResource, ConfigScope, is_topic
from kdeclare.providers.kafka.live import KafkaState
from kdeclare.providers.kafka.topic.spec import TopicBody

_MAX_NAMED = 3


def find_needed_unreadable(
    live: KafkaState, selection: KafkaSelection, desired: DesiredResource | None
) -> ConfigResource | None:
    """Return a resource whose configs a plan needs but the cluster does not describe; None if there is none.

    A topic that neither declares nor owns configs can be planned without its configs.
    """
    for resource, query in sorted(selection.configs.items()):
        if resource in live.unreadable:
            body = desired.body if desired is not None else None
            removes_unmanaged = isinstance(body, TopicBody) and body.remove_unmanaged
            if query.keys or removes_unmanaged or resource.scope is not ConfigScope.TOPIC:
                return resource
    return None


def leave_unreadable(
    resource: ResourceId, desired: DesiredResource | None, owned: OwnedRecord | None, fault: Fault
) -> Difference:
    """Leave a resource unchanged, because the cluster does not describe its configs. fault: the reason."""
    make_diagnostic, outcome = (
        (denied, "is left unchanged") if desired else (warning, "is left unchanged and stays owned")
    )
    is_unsupported = fault.error == UNSUPPORTED_VERSION
    diagnostic = make_diagnostic(
        "not-visible",
        "Configs not visible",
        f"{resource} {outcome}: kdeclare cannot compare its configs, because the brokers do not describe "
        f"them: {explain_refusal(fault)}.",
        hint=""
        if is_unsupported
        else "Grant kdeclare the DescribeConfigs permission. If your Kafka service does not offer this "
        "permission, remove the configs from the manifest.",
        place=desired.source if desired else None,
        resource=str(resource),
    )
    return Difference(None, owned, diagnostics=(diagnostic,))


def warn_unreadable_configs(live: KafkaState, compared: Sequence[ResourceComparison]) -> list[Diagnostic]:
    """Return the warning that topics may have undeclared configs, which the cluster hides from kdeclare."""
    names = sorted(
        item.id.name
        for item in compared
        if is_topic(item.id)
        and item.change is not None
        and ConfigResource(ConfigScope.TOPIC, item.id.name) in live.unreadable
    )
    if not names:
        return []
    listed = ", ".join(names[:_MAX_NAMED]) + (", …" if len(names) > _MAX_NAMED else "")
    return [
        warning(
            "configs-unknown",
            "Configs not visible",
            f"The brokers do not describe the configs of {format_count(len(names), 'topic')} ({listed}). No "
            "manifest declares these configs, so the plan does not need them. However, it cannot list them "
            "as unmanaged.",
            hint="Grant kdeclare the DescribeConfigs permission on the topics.",
        )
    ]
