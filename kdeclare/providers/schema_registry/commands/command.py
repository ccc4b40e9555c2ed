"""The command ``kdeclare schema-registry``: list, describe and compare schemas, and check files."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kdeclare.cli.command import command
from kdeclare.cli.console import Console
from kdeclare.cli.epilogs import build_epilog
from kdeclare.cli.options.option_groups import ConnectionOptions
from kdeclare.cli.options.single_options import Format
from kdeclare.core.exit_codes import ExitCode
from kdeclare.providers.schema_registry.names import LevelName, SchemaTypeName

if TYPE_CHECKING:
    from kdeclare.providers.schema_registry.commands.candidate import CandidateFile
    from kdeclare.providers.schema_registry.schema.spec import DeclaredReference

_LIST_EPILOG = build_epilog(
    "kdeclare schema-registry list",
    "kdeclare schema-registry list --registry main --deleted",
    codes=(0, 1, 64, 130),
)
_DESCRIBE_EPILOG = build_epilog(
    "kdeclare schema-registry describe orders-value",
    "kdeclare schema-registry describe orders-value --version 2",
    codes=(0, 1, 64, 130),
)
_DIFF_EPILOG = build_epilog(
    "kdeclare schema-registry diff orders-value                   the latest two versions",
    "kdeclare schema-registry diff orders-value --from 2 --to 5",
    "kdeclare schema-registry diff orders-value --file orders.avsc",
    codes=(0, 1, 2, 64, 130),
)
_CHECK_EPILOG = build_epilog(
    "kdeclare schema-registry check orders.avsc --subject orders-value",
    "kdeclare schema-registry check orders.avsc --subject orders-value --level FULL",
    "kdeclare schema-registry check user.avsc --subject user --reference shop.Order=orders-value",
    codes=(0, 1, 64, 130),
)
Subject = Annotated[str, typer.Argument(metavar="SUBJECT", help="Name of the subject.")]
RegistryName = Annotated[
    str | None,
    typer.Option(
        "--registry", metavar="NAME", help="Schema registry in the environment (default: all registries)."
    ),
]
TypeOption = Annotated[
    SchemaTypeName | None,
    typer.Option(
        "--type",
        metavar="AVRO|JSON|PROTOBUF",
        case_sensitive=False,
        help="Type of the schema (default: from the extension .avsc or .proto, or from the latest version).",
    ),
]
LevelOption = Annotated[
    LevelName | None,
    typer.Option(
        "--level",
        metavar="LEVEL",
        case_sensitive=False,
        help="Compatibility level, such as BACKWARD or FULL (default: the level of the subject).",
    ),
]
References = Annotated[
    list[str] | None,
    typer.Option(
        "--reference",
        metavar="NAME=SUBJECT[:VERSION]",
        help="Schema that the schema in the file refers to by this name. Without VERSION: the latest "
        "version. Repeatable (default: the references in the subject's manifest, or in its latest version).",
    ),
]


def register(app: typer.Typer) -> None:
    """Register the commands with the application."""
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
    command(group, "list", epilog=_LIST_EPILOG)(list_all)
    command(group, "describe", epilog=_DESCRIBE_EPILOG)(describe_one)
    command(group, "diff", epilog=_DIFF_EPILOG)(compare_versions)
    command(group, "check", epilog=_CHECK_EPILOG)(check_schema)
    app.add_typer(group, name="schema-registry", help="List, describe, compare and check schemas.")


def list_all(
    *,
    registry: RegistryName = None,
    deleted: Annotated[
        bool,
        typer.Option("--deleted", help="Also list soft-deleted subjects and versions."),
    ] = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """List subjects with their type, versions and compatibility level.

    Lists the subjects of all schema registries of the environment. Exits with 1 if a registry cannot be read,
    after listing the others.
    """
    from kdeclare.providers.schema_registry.commands.read_subjects import list_subjects
    from kdeclare.providers.schema_registry.commands.registry_text import render_subject_list

    workspace = reach.workspace()
    console.progress("Reading the subjects", 0, 0)
    view = list_subjects(workspace, registry, with_deleted=deleted)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_subject_list(view, console.width, console.style))
    return ExitCode(view.exit_code)


def describe_one(
    subject: Subject,
    *,
    registry: RegistryName = None,
    version: Annotated[
        int | None, typer.Option(min=1, metavar="NUMBER", help="Version to show (default: the latest).")
    ] = None,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Show a subject with one version of its schema.

    Shows the schema, its references, the schemas that refer to it, the compatibility level, and the topic
    according to the naming strategies of serializers. Also shows the manifest that declares the subject, and
    whether kdeclare owns it.
    """
    from kdeclare.providers.schema_registry.commands.read_subjects import describe_subject
    from kdeclare.providers.schema_registry.commands.registry_text import render_subject

    workspace = reach.workspace()
    console.progress("Reading the subject", 0, 0)
    view = describe_subject(workspace, subject, registry, version)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_subject(view, console.style))
    return ExitCode.OK


def compare_versions(
    subject: Subject,
    *,
    registry: RegistryName = None,
    before: Annotated[
        int | None,
        typer.Option(
            "--from",
            min=1,
            metavar="NUMBER",
            help="Version to start from (default: the version before --to; with --file, the latest version).",
        ),
    ] = None,
    after: Annotated[
        int | None,
        typer.Option("--to", min=1, metavar="NUMBER", help="Version to compare (default: the latest)."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="FILE", help="Schema to compare, instead of a version.")
    ] = None,
    type_: TypeOption = None,
    reference: References = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with 2 if there are differences.")
    ] = False,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Compare two versions, or a version and a file.

    Names each difference, and then shows the changed lines. Both schemas are formatted in the same way
    first, so that white space and the order of keys make no difference.
    """
    from kdeclare.providers.schema_registry.commands.compare_schemas import DiffRequest, diff_subject
    from kdeclare.providers.schema_registry.commands.registry_text import render_schema_diff

    if file is not None and after is not None:
        raise typer.BadParameter("cannot be combined with --to.", param_hint="--file")
    if file is None and (type_ is not None or reference):
        raise typer.BadParameter(
            "can only be used with --file.", param_hint="--type" if type_ is not None else "--reference"
        )
    candidate = _build_candidate(file, type_, reference) if file is not None else None
    workspace = reach.workspace()
    console.progress("Reading the schemas", 0, 0)
    request = DiffRequest(before, after if candidate is None else candidate)
    view = diff_subject(workspace, subject, registry, request, detailed_exitcode=detailed_exitcode)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_schema_diff(view, console.style))
    return ExitCode(view.exit_code)


def check_schema(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File with the schema.")],
    *,
    subject: Annotated[str, typer.Option("--subject", metavar="SUBJECT", help="Subject of the schema.")],
    registry: RegistryName = None,
    type_: TypeOption = None,
    level: LevelOption = None,
    reference: References = None,
    output: Format = "text",
    reach: ConnectionOptions,
    console: Console,
) -> ExitCode:
    """Check whether a schema can be the next version of a subject.

    Reports errors in the schema with their positions. Then shows what a registration would do, the result of
    the registry's compatibility check, and the differences from the latest version. Registers nothing. Exits
    with 1 if the schema is not valid or not compatible. Registries check a schema only at the current level.
    If the result says nothing about the level in --level, the schema counts as not checked.
    """
    from kdeclare.providers.schema_registry.client.port import CompatibilityLevel
    from kdeclare.providers.schema_registry.commands.compare_schemas import check_file
    from kdeclare.providers.schema_registry.commands.registry_text import render_schema_check

    candidate = _build_candidate(file, type_, reference)
    workspace = reach.workspace()
    console.progress("Checking the schema", 0, 0)
    requested = CompatibilityLevel(level) if level is not None else None
    view = check_file(workspace, subject, registry, candidate, requested)
    if console.is_json:
        console.write_document(view)
    else:
        console.out(render_schema_check(view, console.style))
    return ExitCode(view.exit_code)


def _build_candidate(file: Path, type_: str | None, references: list[str] | None) -> "CandidateFile":
    from kdeclare.providers.schema_registry.client.port import SchemaType
    from kdeclare.providers.schema_registry.commands.candidate import CandidateFile

    parsed = tuple(map(_parse_reference, references)) if references else None
    return CandidateFile(file, SchemaType(type_) if type_ is not None else None, parsed)


def _parse_reference(text: str) -> "DeclaredReference":
    from kdeclare.providers.schema_registry.commands.candidate import parse_reference

    try:
        return parse_reference(text)
    except ValueError as e:
        raise typer.BadParameter(f"{e}.", param_hint="--reference") from None
