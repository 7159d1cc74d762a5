"""Which files are a suite's own, and which ones settings name."""

import pytest

from tests.builders import suite
from zelda_ci.config.document import DEFAULT
from zelda_ci.config.suites import LoadedSuite
from zelda_ci.pipeline.fingerprints import evidence
from zelda_ci.selection.reach import words_in_settings


@pytest.mark.parametrize(
    ("prefix", "settings", "expected"),
    [
        ("", {"setup_command": "cp -r fixtures .claude"}, {"cp", "-r", "fixtures", ".claude"}),
        ("", {"setup_command": 'cp fixtures/rules/*.md "$PWD/conf/x"'}, {"cp", "fixtures/rules", "conf/x"}),
        ("", {"test_command": "pytest tests ./checks/ ."}, {"checks"}),
        ("", {"test_command": ("sh", "/usr/bin/x.sh", "check.sh")}, {"check.sh"}),
        ("apps/shop", {"test_command": "sh ../shared/check.sh .. ../../"}, {"apps/shared/check.sh"}),
    ],
)  # fmt: skip
def test_words_of_commands_may_be_files_and_folders(
    prefix: str, settings: dict[str, object], expected: set[str]
) -> None:
    resolved = suite("example", **settings)
    (known,) = evidence([LoadedSuite(resolved, {"prompt": DEFAULT})], prefix, (), {})
    own = f"{prefix}/{resolved.file}".lstrip("/")
    assert known.files == {own, *expected}


def test_settings_name_files_however_deep() -> None:
    assert "x/y.py" in {it.word for it in words_in_settings('{"a":' * 900 + '"x/y.py"' + "}" * 900)}
