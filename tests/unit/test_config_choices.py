"""The words that config keys take."""

import pytest

from kdeclare.providers.kafka.config.catalog import catalog, split_list
from kdeclare.providers.kafka.config.catalog.hover import choices
from kdeclare.providers.kafka.ids import ConfigScope


@pytest.mark.parametrize("scope", ConfigScope)
def test_a_default_is_one_of_the_choices(scope: ConfigScope) -> None:
    known = catalog(scope)
    limited = {key: found for key in known.keys if (found := choices(known, key))}
    assert len(limited) > 5
    for key, found in limited.items():
        default = known.keys[key].default
        if default is not None:
            values = split_list(default) if known.keys[key].is_list else (default,)
            assert set(values) <= set(found), key


def test_what_is_chosen_from() -> None:
    topic, broker = catalog(ConfigScope.TOPIC), catalog(ConfigScope.BROKER)
    assert choices(topic, "preallocate") == ("true", "false")
    assert choices(topic, "retention.ms") == ()
    assert choices(topic, "nope") == ()
    assert choices(broker, "listener.name.x.ssl.client.auth") == ("required", "requested", "none")
