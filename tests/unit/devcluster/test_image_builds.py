import re
import threading

import pytest

from devcluster.image_builds import building, catalog, debian, steps
from devcluster.image_builds.catalog import CHECKOUT, IMAGES, with_needs
from devcluster.image_builds.keys import key_of
from devcluster.image_builds.steps import Step

EVERY_IMAGE = pytest.mark.parametrize("image", IMAGES.values(), ids=IMAGES)


def quiet(line: str) -> None:
    """Nobody listens."""


def instructions(image, keyword):
    """The arguments of all instructions of a kind, with those of the build filled in."""
    text = (CHECKOUT / image.dockerfile).read_text().replace("\\\n", " ")
    defaults = dict(re.findall(r"^ARG (\w+)=(\S+)$", text, re.MULTILINE))
    values = defaults | dict(image.arguments)
    found = re.findall(rf"^{keyword} (.+)$", text, re.MULTILINE)
    return [re.sub(r"\$\{(\w+)\}", lambda name: values[name[1]], each) for each in found]


@EVERY_IMAGE
def test_an_image_needs_exactly_what_its_dockerfile_starts_from(image):
    sources = {words.split()[0] for words in instructions(image, "FROM")}
    stages = {words.split()[-1] for words in instructions(image, "FROM") if " AS " in words}
    needed = {tag for need in image.needs for tag in IMAGES[need].tags}
    assert sources - stages - {f"debian:{image.suite}-slim", "scratch"} == needed


@EVERY_IMAGE
def test_all_that_a_dockerfile_copies_is_an_input(image):
    ours = [path for path in image.files() if path.is_relative_to(image.directory)]
    inputs = {path.relative_to(image.directory).as_posix() for path in ours} | set(image.programs)
    for words in instructions(image, "COPY"):
        *sources, _ = [word for word in words.split() if not word.startswith("--ch")]
        if sources[0].startswith("--from="):
            assert all(source.startswith(("/", "$")) for source in sources[1:]), "another stage"
            continue
        for source in sources:
            name = source.rstrip("/")
            assert any(each == name or each.startswith(f"{name}/") for each in inputs), source


@EVERY_IMAGE
def test_no_dockerfile_takes_over_what_this_machine_trusts(image):
    text = (CHECKOUT / image.dockerfile).read_text()
    assert "cert" not in text.replace("ca-certificates", "")


def test_every_dockerfile_is_of_an_image():
    kept = {CHECKOUT / image.dockerfile for image in IMAGES.values()}
    places = (CHECKOUT / name for name in ("cmd", "deploy/images", "examples", "tests"))
    found = {path for place in places for path in place.rglob("*ockerfile")}
    found.add(CHECKOUT / "Dockerfile")
    assert found == kept


def test_needs_come_first():
    order = [image.name for image in with_needs(["pi-intel"])]
    assert order[-1] == "pi-intel"
    assert order.index("toolchain-trixie") < order.index("base-trixie") < order.index("intel")
    assert len(order) == len(set(order))


def test_images_that_differ_have_different_keys():
    keys = {key_of(image) for image in IMAGES.values()}
    assert len(keys) == len(IMAGES)


def test_a_key_follows_from_the_inputs_of_all_that_an_image_is_made_of(monkeypatch):
    before = {name: key_of(image) for name, image in IMAGES.items()}
    recipe = debian.recipe
    monkeypatch.setattr(debian, "recipe", lambda suite: recipe(suite) + "!" * (suite == "bookworm"))
    changed = {name for name, image in IMAGES.items() if key_of(image) != before[name]}
    assert changed == {
        "toolchain-bookworm",
        "base-bookworm",
        "openmpi-4.1",
        "openmpi-builder-4.1",
        "pi-openmpi-4",
        "pi-openmpi-4-no-sshd",
        "flyte",
        "horovod",
        "horovod-examples",
        "tensorflow-benchmarks",
    }


def test_archives_that_are_there_need_no_tool(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    wanted = [IMAGES[name] for name in catalog.usual()]
    building.directory().mkdir(parents=True)
    for image in wanted:
        building.archive_of(image).touch()
    assert list(building.provide(say=quiet)) == [image.name for image in wanted]


def test_steps_wait_for_what_they_need_and_go_in_order_otherwise():
    done: list[str] = []

    def step(name: str, *needs: str) -> Step:
        return Step(name, "", needs, lambda: done.append(name))

    steps.run([step("c", "b"), step("a"), step("b", "a"), step("d")], quiet, at_once=1)
    assert done == ["a", "b", "c", "d"]


def test_steps_that_do_not_need_each_other_go_side_by_side():
    both = threading.Barrier(2, timeout=10)
    pair = [Step(name, "", (), lambda: [both.wait()].clear()) for name in ("a", "b")]
    steps.run(pair, quiet, at_once=2)
    assert not both.broken


def test_a_step_that_fails_ends_the_build():
    done: list[str] = []

    def fail() -> None:
        raise ValueError("no")

    following = Step("b", "", ("a",), lambda: done.append("b"))
    with pytest.raises(ValueError, match="no"):
        steps.run([Step("a", "", (), fail), following], quiet)
    assert done == []


def test_slow_steps_are_announced_with_their_usual_time():
    said: list[str] = []
    long, short = Step("a", "a minute", (), lambda: None), Step("b", "", (), lambda: None)
    steps.run([long, short], said.append)
    assert said == ["a: building (usually a minute)", "a: built in 0s"]


def test_the_archives_are_outside_the_checkout():
    assert CHECKOUT not in building.directory().parents
