"""Names of an earlier version lead to what replaced them, with a warning."""

import pytest

from kdeclare import api


@pytest.mark.parametrize(("old", "new"), sorted(api._DEPRECATED.items()))
def test_deprecated_name_is_its_replacement(old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"Use {new} instead of {old}"):
        assert getattr(api, old) is getattr(api, new)
    assert old not in api.__all__
    assert new in api.__all__


def test_other_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = api.Nothing
