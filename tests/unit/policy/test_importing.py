"""Classes from a folder and from packages, and everything that can be wrong with them."""

import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from kdeclare.policy.importable import importable
from kdeclare.policy.importing import Unusable, configure, make
from kdeclare.policy.interface import RequestMetadata, TopicActionsPolicy
from kdeclare.policy.rules import PartitionBounds

pytestmark = pytest.mark.usefixtures("own_modules")

POLICY = """\
from kdeclare.policy.interface import TopicActionsPolicy

class Naming(TopicActionsPolicy):
    mark = "MARK"
    def validate(self, request):
        pass
"""


def write(folder: Path, file: str, text: str) -> None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def made(folder: Path, class_name: str) -> Any:
    with importable(folder, [class_name.partition(":")[0]]):
        return make(class_name)


def problem(folder: Path, class_name: str) -> tuple[str, str, str]:
    with pytest.raises(Unusable) as caught:
        made(folder, class_name)
    (found,) = caught.value.problems
    assert found.path == ("class",)
    assert found.diagnostic.is_error
    return found.diagnostic.code, found.diagnostic.detail, found.diagnostic.hint


@pytest.mark.parametrize(
    ("file", "class_name"),
    [("naming.py", "naming:Naming"), ("policies/naming.py", "policies.naming:Naming")],
)
def test_a_class_beside_the_project_file(tmp_path: Path, file: str, class_name: str) -> None:
    write(tmp_path, file, POLICY)
    assert isinstance(made(tmp_path, class_name), TopicActionsPolicy)


def test_a_class_of_a_package(tmp_path: Path) -> None:
    assert isinstance(made(tmp_path, "kdeclare.policy.rules:PartitionBounds"), PartitionBounds)


def test_a_folder_given_relative_to_where_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "shop/naming.py", POLICY)
    monkeypatch.chdir(tmp_path)
    assert made(Path("shop"), "naming:Naming").mark == "MARK"


@pytest.mark.parametrize("init", [(), ("policies/__init__.py",)])
def test_projects_with_modules_of_the_same_names(tmp_path: Path, init: tuple[str, ...]) -> None:
    for project in "abab":
        folder = tmp_path / project
        for file in init:
            write(folder, file, "")
        write(
            folder,
            "policies/naming.py",
            POLICY.replace('"MARK"', "marks.MARK").replace("class", "import marks\nclass"),
        )
        write(folder, "marks.py", f'MARK = "{project}"\n')
        assert made(folder, "policies.naming:Naming").mark == project


def test_a_stranger_of_the_same_name_is_back_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "elsewhere/naming.py", "HERE = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    import naming  # type: ignore[import-not-found]

    write(tmp_path, "shop/naming.py", POLICY)
    assert made(tmp_path / "shop", "naming:Naming").mark == "MARK"
    assert sys.modules["naming"] is naming


def test_a_file_called_like_one_of_pythons_own_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, "json.py", "raise SystemExit\n")
    write(tmp_path, "kdeclare.py", "raise SystemExit\n")
    write(tmp_path, "__main__.py", "raise SystemExit\n")
    main = sys.modules["__main__"]
    write(tmp_path, "naming.py", f"import json\njson.dumps\n{POLICY}\nimport __main__\nmain = __main__\n")
    assert made(tmp_path, "naming:Naming").mark == "MARK"
    assert sys.modules["naming"].main is main


def test_a_class_imported_into_a_module_is_one_of_it(tmp_path: Path) -> None:
    write(tmp_path, "naming.py", POLICY)
    write(tmp_path, "all_of_them.py", "from naming import Naming\n")
    assert made(tmp_path, "all_of_them:Naming").mark == "MARK"


@pytest.mark.parametrize(
    ("class_name", "code", "detail", "hint"),
    [
        (
            "naming",
            "not-a-policy",
            "'naming' is not of the form module:Class.",
            "The file policies/naming.py",
        ),
        ("a b:C", "not-a-policy", "'a b:C' is not of the form module:Class.", "The file"),
        ("..:C", "not-a-policy", "'..:C' is not of the form module:Class.", "The file"),
        ("namign:Naming", "policy-not-found", "There is no module 'namign'.", "Did you mean 'naming'?"),
        (
            "nowhere:A",
            "policy-not-found",
            "There is no module 'nowhere'.",
            "It is looked for beside",
        ),
        (
            "kdeclare.policy.rule:A",
            "policy-not-found",
            "There is no module 'rule' in 'kdeclare.policy'.",
            "Did you mean 'rules'?",
        ),
        ("naming.more:A", "policy-not-found", "There is no module 'more' in 'naming'.", "It is looked for"),
        ("naming:naming", "policy-not-found", "'naming' has no class 'naming'.", "Did you mean 'Naming'?"),
        (
            "naming:Zzz",
            "policy-not-found",
            "'naming' has no class 'Zzz'.",
            "It has Abstract, Naming or Needy.",
        ),
        (
            "naming:LIMIT",
            "not-a-policy",
            "'naming:LIMIT' is no subclass of AlterConfigPolicy, CreateTopicPolicy or TopicActionsPolicy.",
            "",
        ),
        ("naming:Other", "not-a-policy", "'naming:Other' is no subclass of", ""),
        ("naming:TopicActionsPolicy", "not-a-policy", "'naming:TopicActionsPolicy' is no subclass of", ""),
        (
            "naming:Abstract",
            "not-a-policy",
            "'naming:Abstract' is abstract: it does not define validate.",
            "",
        ),
        (
            "naming:Needy",
            "policy-failed",
            "'naming:Needy' cannot be made without arguments: ValueError: no (naming.py:15).",
            "",
        ),
        (
            "typo:A",
            "policy-failed",
            "'typo' cannot be imported: NameError: name 'oops' is not defined (typo.py:3).",
            "",
        ),
        (
            "syntax:A",
            "policy-failed",
            "'syntax' cannot be imported: SyntaxError: '(' was never closed (syntax.py:2).",
            "",
        ),
        (
            "lacking:A",
            "policy-failed",
            "'lacking' cannot be imported: ModuleNotFoundError: No module named 'nowhere' (lacking.py:1).",
            "",
        ),
        ("library:A", "policy-failed", "'library' cannot be imported: JSONDecodeError: ", ""),
        ("leaving:A", "policy-failed", "'leaving' cannot be imported: SystemExit: 3 (leaving.py:1).", ""),
        ("package.inner:A", "policy-failed", "'package.inner' cannot be imported: ZeroDivisionError: ", ""),
    ],
)
def test_a_class_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, class_name: str, code: str, detail: str, hint: str
) -> None:
    write(
        tmp_path,
        "naming.py",
        f"""{POLICY}
LIMIT = 5
class Other: pass
class Abstract(TopicActionsPolicy): pass
class Needy(Naming):
    MORE = 1

    def __init__(self):
        raise ValueError("no.")
""",
    )
    write(tmp_path, "typo.py", "\n\noops\n")
    write(tmp_path, "syntax.py", "\nfoo(\n")
    write(tmp_path, "lacking.py", "import nowhere\n")
    write(tmp_path, "library.py", "import json\n\njson.loads('{')\n")
    write(tmp_path, "leaving.py", "raise SystemExit(3)\n")
    write(tmp_path, "package/__init__.py", "1 / 0\n")
    monkeypatch.chdir(tmp_path)
    found = problem(tmp_path, class_name)
    assert found[0] == code
    assert detail in found[1]
    assert found[2].startswith(hint)
    assert bool(found[2]) is bool(hint)
    if class_name == "library:A":
        assert found[1].endswith("(library.py:3).")


def test_a_traceback_goes_to_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "typo.py", "oops\n")
    with caplog.at_level(logging.INFO):
        problem(tmp_path, "typo:A")
    assert "Traceback" in caplog.text
    assert "oops" in caplog.text


class Limits(BaseModel):
    """Of one more level."""

    model_config = ConfigDict(extra="forbid")
    most: int = 1


class Own(TopicActionsPolicy):
    """With settings of its own."""

    class Model(BaseModel):
        """Some of everything."""

        model_config = ConfigDict(extra="forbid")
        pattern: str
        limits: dict[str, Limits] = {}
        sizes: list[int] = Field(default=[], max_length=2)
        odd: int = 1

        @field_validator("odd")
        @classmethod
        def _odd(cls, value: int) -> int:
            if value % 2 == 0:
                raise ValueError("is even")
            return value

    settings_model = Model

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.Model.model_validate(configs, strict=True)
        if configs["pattern"] == "raise":
            raise RuntimeError

    def validate(self, request: RequestMetadata) -> None:
        return


@pytest.mark.parametrize(
    ("settings", "path", "code", "detail", "hint"),
    [
        ({}, (), "missing-field", "'config' needs a field 'pattern'.", ""),
        (
            {"pattern": 1},
            ("pattern",),
            "wrong-type",
            "'config.pattern' takes text, not 1.",
            "Put it in quotes.",
        ),
        (
            {"pattern": "", "patern": 1},
            ("patern",),
            "unknown-field",
            "There is no field 'patern' in 'config'.",
            "Did you mean 'pattern'?",
        ),
        (
            {"pattern": "", "limits": {"a.b": {"mots": 1}}},
            ("limits", "a.b", "mots"),
            "unknown-field",
            "There is no field 'mots' in 'config.limits.a.b'.",
            "Did you mean 'most'?",
        ),
        (
            {"pattern": "", "sizes": [1, "b"]},
            ("sizes", 1),
            "wrong-type",
            "'config.sizes[1]' takes a whole",
            "",
        ),
        ({"pattern": "", "sizes": [1, 2, 3]}, ("sizes",), "bad-value", "'config.sizes' takes at most 2", ""),
        ({"pattern": "", "odd": 2}, ("odd",), "bad-value", "'config.odd': is even.", ""),
        (
            {"pattern": "raise"},
            (),
            "policy-failed",
            "'own:Own' does not take its settings: RuntimeError (tests/unit/policy/test_importing.py:",
            "",
        ),
    ],
)
def test_settings_that_are_not_taken(
    settings: dict[str, Any], path: tuple[str | int, ...], code: str, detail: str, hint: str
) -> None:
    with pytest.raises(Unusable) as caught:
        configure(Own(), "own:Own", settings)
    (found,) = caught.value.problems
    assert found.path == ("config", *path)
    assert found.diagnostic.code == code
    assert found.diagnostic.detail.startswith(detail)
    assert found.diagnostic.hint == hint


def test_all_that_is_wrong_with_settings_is_told() -> None:
    with pytest.raises(Unusable) as caught:
        configure(Own(), "own:Own", {"sizes": ["a", "b"], "odd": 4})
    assert [p.path[1:] for p in caught.value.problems] == [(), ("sizes", 0), ("sizes", 1), ("odd",)]
