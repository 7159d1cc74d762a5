"""Whatever is in the files: a project, or a ConfigError that shows no control characters. Never anything else."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.config.folder import GOOD
from zelda_ci.config import project
from zelda_ci.config.schema import ProjectConfig, SuiteConfig, keys
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
            assert all(line.isprintable() for line in lines)


@settings(max_examples=50)
@given(texts)
@example("? [")
@example("[!, ]")
@example("[!a,b, !!str c]")
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
