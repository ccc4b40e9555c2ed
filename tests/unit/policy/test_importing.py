"""Policy classes from a folder and from packages, and all their possible mistakes."""

import importlib
import importlib.util
import logging
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from kdeclare.policy.deprecated import AlterConfigPolicy, CreateTopicPolicy, adapt_policy
from kdeclare.policy.interface import RequestMetadata, TopicActionsPolicy
from kdeclare.policy.loading.module_finder import make_importable
from kdeclare.policy.loading.policy_classes import UnusablePolicy, configure_policy, make_policy
from kdeclare.policy.rules import PartitionBounds
from tests.unit.policy.doubles import State, make_creation, make_modification

pytestmark = pytest.mark.usefixtures("own_modules")

POLICY = """\
from kdeclare.policy.interface import TopicActionsPolicy

class Naming(TopicActionsPolicy):
    mark = "MARK"
    def validate(self, request):
        pass
"""


ODD = f"""
def __getattr__(name):
    if name == "A":
        raise RuntimeError("nothing here")
    raise AttributeError(name)

from kdeclare.policy import CreateTopicPolicy
{POLICY}
class Strange:
    @property
    def __class__(self):
        raise RuntimeError
strange = Strange()
class Silent(BaseException):
    def __str__(self):
        raise self
class Dumb(Exception):
    def __str__(self):
        raise RuntimeError
    __repr__ = __str__
class Number(Naming):
    def __new__(cls):
        return 42
class Mute(Naming):
    def __init__(self):
        raise Silent
class Muter(Naming):
    def __init__(self):
        raise Dumb
class Two(Naming, CreateTopicPolicy):
    pass
"""

IMPATIENT = """\
import os
import sys
from pathlib import Path
from kdeclare.policy import isolation
from kdeclare.policy.loading.policy_classes import UnusablePolicy, make_policy
from kdeclare.policy.loading.module_finder import make_importable
isolation.LIMIT_S = 0.3
with make_importable(Path(), ["slow"]):
    try:
        make_policy("slow:Naming")
    except UnusablePolicy as unusable:
        print(unusable)
sys.stdout.flush()
os._exit(0)  # as the command does: a thread that prints for ever must not hold it up
"""


def write_file(folder: Path, file: str, text: str) -> None:
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def import_policy(folder: Path, class_name: str) -> Any:
    with make_importable(folder, [class_name.partition(":")[0]]):
        return make_policy(class_name)


def find_import_problem(folder: Path, class_name: str) -> tuple[str, str, str]:
    with pytest.raises(UnusablePolicy) as caught:
        import_policy(folder, class_name)
    (found,) = caught.value.problems
    assert found.path == ("class",)
    assert found.diagnostic.is_error
    return found.diagnostic.code, found.diagnostic.detail, found.diagnostic.hint


@pytest.mark.parametrize(
    ("file", "class_name"),
    [("naming.py", "naming:Naming"), ("policies/naming.py", "policies.naming:Naming")],
)
def test_make_policy_finds_class_next_to_project_file(tmp_path: Path, file: str, class_name: str) -> None:
    write_file(tmp_path, file, POLICY)
    assert isinstance(import_policy(tmp_path, class_name), TopicActionsPolicy)


def test_make_policy_finds_class_of_package(tmp_path: Path) -> None:
    assert isinstance(import_policy(tmp_path, "kdeclare.policy.rules:PartitionBounds"), PartitionBounds)


def test_make_importable_accepts_relative_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path, "shop/naming.py", POLICY)
    monkeypatch.chdir(tmp_path)
    assert import_policy(Path("shop"), "naming:Naming").mark == "MARK"


@pytest.mark.parametrize("init", [(), ("policies/__init__.py",)])
def test_projects_with_same_module_names_are_independent(tmp_path: Path, init: tuple[str, ...]) -> None:
    for project in "abab":
        folder = tmp_path / project
        for file in init:
            write_file(folder, file, "")
        write_file(
            folder,
            "policies/naming.py",
            POLICY.replace('"MARK"', "marks.MARK").replace("class", "import marks\nclass"),
        )
        write_file(folder, "marks.py", f'MARK = "{project}"\n')
        assert import_policy(folder, "policies.naming:Naming").mark == project


@pytest.mark.parametrize("loaded", [True, False])
@pytest.mark.parametrize("file", ["naming.py", "naming/__init__.py"])
def test_module_name_found_elsewhere_is_ambiguous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, loaded: bool
) -> None:
    write_file(tmp_path, "elsewhere/naming.py", "HERE = 1\n")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    stranger = importlib.import_module("naming") if loaded else None
    write_file(tmp_path, f"shop/{file}", POLICY)
    code, detail, hint = find_import_problem(tmp_path / "shop", "naming:Naming")
    assert (code, hint) == ("ambiguous-policy-module", "Rename the module in the folder of the project file.")
    assert detail.startswith("'naming' ")
    assert sys.modules.get("naming") is stranger


@pytest.mark.parametrize(
    ("file", "class_name", "what"),
    [
        ("json.py", "json:A", "'json' is a module of Python's standard library"),
        ("kafka/naming.py", "kafka.naming:A", "'kafka' "),
        ("yaml.py", "yaml:A", "'yaml' "),
    ],
)
def test_module_named_like_installed_module_is_ambiguous(
    tmp_path: Path, file: str, class_name: str, what: str
) -> None:
    write_file(tmp_path, file, POLICY)
    code, detail, _ = find_import_problem(tmp_path, class_name)
    assert code == "ambiguous-policy-module"
    assert detail.startswith(what)


def test_project_folder_on_import_path_is_not_ambiguous(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path, "policies/naming.py", POLICY)
    monkeypatch.syspath_prepend(tmp_path)
    assert import_policy(tmp_path, "policies.naming:Naming").mark == "MARK"


def test_folder_without_modules_elsewhere_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_file(tmp_path, "elsewhere/policies/README.md", "")
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    write_file(tmp_path, "shop/policies/naming.py", POLICY)
    assert import_policy(tmp_path / "shop", "policies.naming:Naming").mark == "MARK"


def test_modules_of_project_are_visible_only_to_its_policies(tmp_path: Path) -> None:
    write_file(tmp_path, "naming.py", "import marks\n" + POLICY.replace('"MARK"', "marks.MARK"))
    write_file(tmp_path, "marks.py", "import kafka\nimport textwrap\nMARK = kafka.__file__\n")
    for name in ("kafka", "textwrap", "cel_expr_python"):
        write_file(tmp_path, f"{name}.py", "raise SystemExit\n")
    with make_importable(tmp_path, ["naming"]):
        assert importlib.util.find_spec("marks") is None, "not in a thread of somebody else's"
        policy: Any = make_policy("naming:Naming")
    assert not Path(policy.mark).is_relative_to(tmp_path)
    assert str(tmp_path) not in sys.path


def test_make_policy_reads_changed_files_again(tmp_path: Path) -> None:
    for mark in ("a", "bb"):
        write_file(tmp_path, "naming.py", "import marks\n" + POLICY.replace('"MARK"', "marks.MARK"))
        write_file(tmp_path, "marks.py", f"MARK = '{mark}'\n")
        assert import_policy(tmp_path, "naming:Naming").mark == mark


def test_file_named_like_standard_module_is_not_imported(tmp_path: Path) -> None:
    write_file(tmp_path, "json.py", "raise SystemExit\n")
    write_file(tmp_path, "kdeclare.py", "raise SystemExit\n")
    write_file(tmp_path, "__main__.py", "raise SystemExit\n")
    main = sys.modules["__main__"]
    write_file(
        tmp_path, "naming.py", f"import json\njson.dumps\n{POLICY}\nimport __main__\nmain = __main__\n"
    )
    assert import_policy(tmp_path, "naming:Naming").mark == "MARK"
    assert sys.modules["naming"].main is main


def test_make_policy_finds_class_imported_into_module(tmp_path: Path) -> None:
    write_file(tmp_path, "naming.py", POLICY)
    write_file(tmp_path, "all_of_them.py", "from naming import Naming\n")
    assert import_policy(tmp_path, "all_of_them:Naming").mark == "MARK"


@pytest.mark.parametrize(
    ("class_name", "code", "detail", "hint"),
    [
        (
            "naming",
            "not-a-policy",
            "'naming' does not have the form module:Class.",
            "Write 'policies.naming:Class' for a class in policies/naming.py",
        ),
        (
            "a b:C",
            "not-a-policy",
            "'a b:C' does not have the form module:Class.",
            "Write 'policies.naming:Class'",
        ),
        (
            "..:C",
            "not-a-policy",
            "'..:C' does not have the form module:Class.",
            "Write 'policies.naming:Class'",
        ),
        (
            "namign:Naming",
            "policy-not-found",
            "The module 'namign' does not exist.",
            "Did you mean 'naming'?",
        ),
        (
            "nowhere:A",
            "policy-not-found",
            "The module 'nowhere' does not exist.",
            "Put the module next to the project file",
        ),
        (
            "kdeclare.policy.rule:A",
            "policy-not-found",
            "The module 'rule' does not exist in 'kdeclare.policy'.",
            "Did you mean 'kdeclare.policy.rules'?",
        ),
        (
            "naming.more:A",
            "policy-not-found",
            "The module 'more' does not exist in 'naming'.",
            "Did you mean",
        ),
        ("nope:X", "policy-not-found", "The module 'nope' does not exist.", "Put the module next to"),
        (
            "rule.keep:X",
            "policy-not-found",
            "The module 'rule' does not exist.",
            "Did you mean 'rules.keep'?",
        ),
        ("odd:A", "policy-failed", "'odd:A' cannot be inspected: RuntimeError: nothing here (odd.py:4).", ""),
        ("odd:Strange", "not-a-policy", "'odd:Strange' is not a subclass of", ""),
        ("odd:strange", "not-a-policy", "'odd:strange' is not a subclass of", ""),
        (
            "odd:Number",
            "not-a-policy",
            "'odd:Number' creates an object of class int, which is not a policy.",
            "",
        ),
        (
            "odd:Mute",
            "policy-failed",
            "'odd:Mute' cannot be constructed without arguments: Silent: Silent() (odd",
            "",
        ),
        ("odd:Muter", "policy-failed", "cannot be constructed without arguments: Dumb (odd.py:", ""),
        ("own:A", "policy-failed", "'own' cannot be imported: Own: done (own.py:2).", ""),
        (
            "odd:Two",
            "policy-conflict",
            "'odd:Two' is both a TopicActionsPolicy and a CreateTopicPolicy",
            "Inh",
        ),
        ("naming:naming", "policy-not-found", "'naming' has no class 'naming'.", "Did you mean 'Naming'?"),
        (
            "naming:Zzz",
            "policy-not-found",
            "'naming' has no class 'Zzz'.",
            "Use Abstract, Naming or Needy.",
        ),
        (
            "naming:LIMIT",
            "not-a-policy",
            "'naming:LIMIT' is not a subclass of AlterConfigPolicy, CreateTopicPolicy, ResourcePolicy or "
            "TopicActionsPolicy.",
            "",
        ),
        ("naming:Other", "not-a-policy", "'naming:Other' is not a subclass of", ""),
        ("naming:TopicActionsPolicy", "not-a-policy", "'naming:TopicActionsPolicy' is not a subclass of", ""),
        (
            "naming:Abstract",
            "not-a-policy",
            "'naming:Abstract' is abstract: it does not implement validate.",
            "",
        ),
        (
            "naming:Needy",
            "policy-failed",
            "'naming:Needy' cannot be constructed without arguments: ValueError: no (naming.py:15).",
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
def test_make_policy_reports_unusable_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, class_name: str, code: str, detail: str, hint: str
) -> None:
    write_file(
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
    write_file(tmp_path, "typo.py", "\n\noops\n")
    write_file(tmp_path, "syntax.py", "\nfoo(\n")
    write_file(tmp_path, "lacking.py", "import nowhere\n")
    write_file(tmp_path, "library.py", "import json\n\njson.loads('{')\n")
    write_file(tmp_path, "leaving.py", "raise SystemExit(3)\n")
    write_file(tmp_path, "package/__init__.py", "1 / 0\n")
    write_file(tmp_path, "rules/keep.py", "")
    write_file(tmp_path, "own.py", "class Own(BaseException): pass\nraise Own('done')\n")
    write_file(tmp_path, "odd.py", ODD)
    monkeypatch.chdir(tmp_path)
    found = find_import_problem(tmp_path, class_name)
    assert found[0] == code
    assert detail in found[1]
    assert found[2].startswith(hint)
    assert bool(found[2]) is bool(hint)
    if class_name == "library:A":
        assert found[1].endswith("(library.py:3).")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("while True: print('x')\n", "'slow' cannot be imported: it did not finish within 0.3 s."),
        (
            f"{POLICY}    def __init__(self):\n        while True: pass\n",
            "'slow:Naming' cannot be constructed without arguments: it did not finish within 0.3 s.",
        ),
    ],
)
def test_make_policy_stops_import_after_time_limit(tmp_path: Path, text: str, detail: str) -> None:
    write_file(tmp_path, "slow.py", text)
    said = subprocess.run(
        [sys.executable, "-c", IMPATIENT], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert said.stdout.splitlines() == [detail], said.stderr[-500:]
    assert said.returncode == 0


def test_output_of_policy_setup_goes_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_file(
        tmp_path,
        "naming.py",
        f"import sys\nprint('import')\nsys.stdout.write('direct ')\n{POLICY}    def __init__(self):\n"
        "        print('made')\n    def configure(self, configs):\n        print('configured')\n",
    )
    before = sys.stdout
    configure_policy(import_policy(tmp_path, "naming:Naming"), "naming:Naming", {})
    assert sys.stdout is before
    assert capsys.readouterr() == ("", "import\ndirect made\nconfigured\n")


class Both(CreateTopicPolicy, AlterConfigPolicy):  # type: ignore[misc]  # RequestMetadata of both
    """A class that implements both deprecated interfaces."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def configure(self, configs: Mapping[str, Any]) -> None:
        self.seen.append(dict(configs))

    def validate(self, request: Any) -> None:
        self.seen.append(request)

    def close(self) -> None:
        self.seen.append("closed")


def test_adapt_policy_supports_both_deprecated_interfaces() -> None:
    both = Both()
    policy = adapt_policy(both)
    assert isinstance(policy, TopicActionsPolicy)
    policy.configure({"a": 1})
    policy.validate(make_creation(State(configs={"flush.ms": "1"})))
    policy.validate(make_modification(State(configs={"flush.ms": "1"}), State(configs={"flush.ms": "2"})))
    policy.close()
    create, alter, later = both.seen[1:-1]
    assert isinstance(create, CreateTopicPolicy.RequestMetadata)
    assert isinstance(alter, AlterConfigPolicy.RequestMetadata)
    assert (create.configs, alter.configs, later.configs) == (
        {"flush.ms": "1"},
        {"flush.ms": "1"},
        {"flush.ms": "2"},
    )
    assert (both.seen[0], both.seen[-1]) == ({"a": 1}, "closed")


@pytest.mark.parametrize("raised", ["Silent()", "Dumb()", "Own(1)"])
def test_configure_policy_reports_unusual_exceptions(tmp_path: Path, raised: str) -> None:
    write_file(
        tmp_path,
        "odd.py",
        f"{ODD}\nclass Own(BaseException): pass\n"
        f"class Set(Naming):\n    def configure(self, configs):\n        raise {raised}\n",
    )
    policy = import_policy(tmp_path, "odd:Set")
    with pytest.raises(UnusablePolicy, match=f"does not accept its settings: {raised.partition('(')[0]}"):
        configure_policy(policy, "odd:Set", {})


def test_make_policy_passes_on_keyboard_interrupt(tmp_path: Path) -> None:
    write_file(tmp_path, "leaving.py", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        import_policy(tmp_path, "leaving:A")


def test_import_error_traceback_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_file(tmp_path, "typo.py", "oops\n")
    with caplog.at_level(logging.INFO):
        find_import_problem(tmp_path, "typo:A")
    assert "Traceback" in caplog.text
    assert "oops" in caplog.text


class Limits(BaseModel):
    """Nested settings."""

    model_config = ConfigDict(extra="forbid")
    most: int = 1


class Own(TopicActionsPolicy):
    """A policy with its own settings."""

    class Model(BaseModel):
        """Settings of several types."""

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
            "'config.pattern' takes a string, not 1.",
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
            "'own:Own' does not accept its settings: RuntimeError (tests/unit/policy/test_importing.py:",
            "",
        ),
    ],
)
def test_configure_policy_reports_invalid_setting(
    settings: dict[str, Any], path: tuple[str | int, ...], code: str, detail: str, hint: str
) -> None:
    with pytest.raises(UnusablePolicy) as caught:
        configure_policy(Own(), "own:Own", settings)
    (found,) = caught.value.problems
    assert found.path == ("config", *path)
    assert found.diagnostic.code == code
    assert found.diagnostic.detail.startswith(detail)
    assert found.diagnostic.hint == hint


def test_configure_policy_reports_all_invalid_settings() -> None:
    with pytest.raises(UnusablePolicy) as caught:
        configure_policy(Own(), "own:Own", {"sizes": ["a", "b"], "odd": 4})
    assert [p.path[1:] for p in caught.value.problems] == [(), ("sizes", 0), ("sizes", 1), ("odd",)]
