"""Whatever is in the files: a project, or a ConfigError that shows no control characters. Never anything else."""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.config.folder import GOOD
from zelda_ci.config import project
from zelda_ci.config.messages import Rejected
from zelda_ci.config.schema import ProjectConfig, SuiteConfig, keys
from zelda_ci.config.source import LOADERS, read
from zelda_ci.errors import ConfigError

KEYS = sorted(
    {key.name for model in (ProjectConfig, SuiteConfig) for key in keys(model)} | {"apiKey", "maxTurn", "str", "0", ""}
)

WORDS = "on 1e3 2026-02-13 5 1.5 .nan true null x '' \"\\0\" &a *a !t | é"

values = st.recursive(
    st.sampled_from(WORDS.split()) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(st.sampled_from(KEYS), inner), max_size=3).map(
            lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
    ),
    max_leaves=6,
)
nearly_right = st.lists(st.tuples(st.sampled_from(KEYS), values), max_size=6).map(
    lambda pairs: "".join(f"{key}: {value}\n" for key, value in pairs)
)
yaml_noise = st.text(st.sampled_from("ab:-#&*!|>'\"%@`{}[],?<=~ \n\t\r\\0159.é\u2028\ufeff"), max_size=60)
texts = nearly_right | yaml_noise | st.text(max_size=60)


def survives(suite: bytes, config: bytes) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "zelda").mkdir()
        (root / "zelda/test-x.yaml").write_bytes(suite)
        (root / "zelda.config.yaml").write_bytes(config)
        try:
            project.load(root)
        except ConfigError as error:
            lines = error.message.split("\n")
            assert len(lines) > 1
            assert all(line.isprintable() for line in lines)


@settings(max_examples=50)
@given(texts)
@example("? [")
@example("{{")
@example("a: &a {<<: *a}")
@example("- - - - - - - ")
@example("prompt: x\nexecution: {maxTurns: 1" + "0" * 5000 + "}")
@example("testDir: " + "a/" * 5000)
@example("testDir: '\\0'\nresultsDir: \"\\0\"")
@example("resultsDir: .zelda/" + "x" * 300)
def test_any_text_is_a_project_or_a_config_error(text):
    data = text.encode("utf-8", "surrogatepass")
    survives(data, b"")
    survives(GOOD.encode(), data)


@settings(max_examples=25)
@given(st.binary(max_size=60))
def test_any_bytes_are_a_project_or_a_config_error(data):
    survives(data, data)


@settings(max_examples=100)
@given(texts)
@example("[!, ]")
@example("[!a,b, !!str c]")
def test_both_parsers_accept_or_refuse_and_build_the_same(text):
    clean = "".join(char for char in text if char.isprintable() or char == "\n").replace("\ufeff", "")
    results: list[Any] = []
    for loader in LOADERS:
        try:
            source = read(clean, "f", loader)
            # The parsers differ in where a value begins that is not there; keys stand where they stand.
            results.append((source.values, source.keys, source.problems))
        except Rejected:
            results.append(None)
    if None in results:
        return
    (*built, problems), (*built_by_other, problems_of_other) = results
    # What follows a refused tag belongs to it for one parser, and is a value of its own for the other.
    assert problems[:1] == problems_of_other[:1]
    if not problems:
        assert built == built_by_other
