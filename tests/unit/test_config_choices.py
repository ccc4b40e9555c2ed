"""The allowed values of config keys."""

import pytest

from kdeclare.providers.kafka.config.catalog import load_catalog, split_list
from kdeclare.providers.kafka.config.catalog.key_docs import list_choices
from kdeclare.providers.kafka.ids import ConfigScope


@pytest.mark.parametrize(
    ("scope", "minimum"), [(ConfigScope.TOPIC, 6), (ConfigScope.BROKER, 6), (ConfigScope.GROUP, 3)]
)
def test_config_default_is_one_of_choices(scope: ConfigScope, minimum: int) -> None:
    known = load_catalog(scope)
    limited = {key: found for key in known.keys if (found := list_choices(known, key))}
    assert len(limited) >= minimum
    for key, found in limited.items():
        default = known.keys[key].default
        if default is not None:
            values = split_list(default) if known.keys[key].is_list else (default,)
            assert set(values) <= set(found), key


def test_list_choices_returns_allowed_values() -> None:
    topic, broker = load_catalog(ConfigScope.TOPIC), load_catalog(ConfigScope.BROKER)
    assert list_choices(topic, "preallocate") == ("true", "false")
    assert list_choices(topic, "retention.ms") == ()
    assert list_choices(topic, "nope") == ()
    assert list_choices(broker, "listener.name.x.ssl.client.auth") == ("required", "requested", "none")
