"""Links to manifests: the template in the fleet file, and the URLs of positions."""

from pathlib import Path

import pytest

from kdeclare.core.diagnostics import KdeclareError
from kdeclare.manifests.fleet.fleet_file import open_fleet
from kdeclare.manifests.fleet.manifest_links import ManifestLinks

TEMPLATE = "https://git.example/kafka/blob/main/{path}#L{line}"
FLEET = """\
apiVersion: kdeclare/v1
kind: Fleet
metadata: {name: shop}
spec:
  manifestUrl: URL
  clusters: [{name: eu-1, bootstrapServers: "eu-1:9092", manifests: [m]}]
"""


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ("manifests/a.yaml:9:7", "https://git.example/kafka/blob/main/manifests/a.yaml#L9"),
        ("m/a (1) #?.yaml:2:1", "https://git.example/kafka/blob/main/m/a%20%281%29%20%23%3F.yaml#L2"),
        ("../other/a.yaml:1:1", None),
        ("/other/a.yaml:1:1", None),
        ("nonsense", None),
    ],
)
def test_url_has_path_and_line(source: str, url: str | None) -> None:
    assert ManifestLinks(TEMPLATE).find_url(source) == url


def test_line_is_optional() -> None:
    assert ManifestLinks("http://git/{path}").find_url("a.yaml:3:1") == "http://git/a.yaml"


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("git.example/{path}", "it does not start with https:// or http://"),
        ("javascript:alert(1)//{path}", "it does not start with https:// or http://"),
        ("https://git.example/", "it does not contain {path}"),
        ("https://git.example/{path}#{column}", "it contains spaces, quotes, brackets, or braces"),
        ("https://git.example/{path})", "it contains spaces, quotes, brackets, or braces"),
        ("https://git.example/{path} x", "it contains spaces, quotes, brackets, or braces"),
    ],
)
def test_wrong_template_is_reported_with_its_position(tmp_path: Path, template: str, reason: str) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.replace("URL", f"'{template}'"))
    with pytest.raises(KdeclareError) as caught:
        open_fleet(tmp_path / "fleet.yaml", {})
    (problem,) = caught.value.diagnostics
    assert reason in problem.detail
    assert str(problem.place) == f"{tmp_path}/fleet.yaml:5:16"


def test_template_of_fleet_file_is_used(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text(FLEET.replace("URL", f"'{TEMPLATE}'"))
    links = open_fleet(tmp_path / "fleet.yaml", {}).manifest_links
    assert links is not None
    assert links.find_url("m/a.yaml:4:2") == TEMPLATE.format(path="m/a.yaml", line=4)
