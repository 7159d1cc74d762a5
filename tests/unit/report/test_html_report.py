"""The HTML report as a file: complete, harmless, within its bounds, and written session by session."""

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.builders import session
from tests.golden.ci_reports import REPORTS
from tests.support.page_samples import EXCEPTION, IMAGE, PICTURE, HostileSessions, PageSample
from tests.support.page_structure import PageStructure, content, structure
from zelda_ci.domain.outcome import Outcome, run_outcome
from zelda_ci.domain.session import SessionImage, SessionTranscript
from zelda_ci.domain.trials import Side
from zelda_ci.report.ci_report import CiReport
from zelda_ci.report.html import writer
from zelda_ci.report.html.rendering import asset
from zelda_ci.report.html.writer import PageOptions, write_report

SMALL = PageSample(suites=2, trials=2, turns=12)
TAGS = """a article b body button caption circle code dd details div dl dt fieldset figcaption figure footer form
h1 h2 h3 head header html i img input kbd label legend li main meta nav ol output p path pre q rect section small span
summary svg table tbody td th thead time title tr ul"""
# Of SVG and of our own; nothing that runs, loads or styles.
ATTRIBUTES = """lang charset http-equiv content name class id href aria-label aria-labelledby aria-hidden
role tabindex hidden open title type for autocomplete spellcheck placeholder method form checked value
popover popovertarget scope src alt viewbox d cx cy r x y width height preserveaspectratio data-title data-up
data-failed data-fail data-stop data-label data-suite data-verdict data-tags data-of data-go data-first data-depth"""


def check_harmless(found: PageStructure) -> None:
    assert found.tags <= {*TAGS.split()}
    assert found.attributes <= {*ATTRIBUTES.split()}


def written(folder: Path, report: CiReport, files: writer.SessionFiles, options: PageOptions | None = None) -> Path:
    path = folder / "report.html"
    write_report(path, report, files, options)
    return path


@dataclass(frozen=True)
class Kept:
    """One transcript for every session, and nothing else."""

    talk: SessionTranscript | None = None
    changes: bytes = b""

    def size(self, _run_id: str) -> int:
        return len(self.talk.model_dump_json()) if self.talk else 0

    def transcript(self, _run_id: str) -> SessionTranscript | None:
        return self.talk

    def patch(self, _run_id: str) -> bytes:
        return self.changes

    def image(self, _run_id: str, _image: SessionImage) -> bytes | None:
        return None


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page"), SMALL.report, SMALL)


def test_every_link_leads_to_a_place_and_every_place_is_one(small: Path) -> None:
    whole = structure(content(small))
    assert len(whole.ids) == len(set(whole.ids))
    assert {link for link in whole.links if link.removeprefix("#") not in whole.ids} == set()


def test_only_our_style_and_our_script_may_run(small: Path) -> None:
    html = small.read_text()
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].replace("&#39;", "'").startswith("default-src 'none'; style-src 'sha256-")
    for kind, name in (("style", "page.css"), ("script", "page.js")):
        text = asset(name)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src &#39;sha256-{digest}&#39;" in html or f"{kind}-src 'sha256-{digest}'" in html
        assert f">{text}</{kind}>" in html
    assert len(asset("page.js").splitlines()) <= 500


def test_a_citation_leads_to_the_line_that_is_quoted(small: Path) -> None:
    html = content(small)
    link = re.search(r'href="#(rest-endpoint-head-1-q1)">patch:src/routes/orders.py', html)
    assert link
    line = re.search(rf'<span class="l-add" id="{link[1]}">([^<]*)</span>', html)
    assert line
    assert line[1].strip() == f"+        {EXCEPTION}".replace('"', "&#34;").strip()


def test_images_are_in_the_file_where_their_bytes_are_what_they_say(tmp_path: Path, small: Path) -> None:
    source = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
    assert set(structure(content(small)).images) == {source}

    class Lying(PageSample):
        def image(self, _run_id: str, _image: SessionImage) -> bytes | None:
            return b"<svg onload='alert(1)'>"

    lying = Lying(suites=1, trials=1, turns=12)
    html = structure(content(written(tmp_path, lying.report, lying)))
    assert html.images == []
    assert f"An image is not shown here: image/png, {IMAGE.size_bytes:,} bytes" in html.text


def test_texts_of_a_session_are_texts(tmp_path: Path) -> None:
    tiny = PageSample(suites=1, trials=1, turns=12)
    found = structure(content(written(tmp_path, tiny.report, HostileSessions(tiny))))
    check_harmless(found)
    assert {link for link in found.links if not link.startswith("#")} == set()
    assert found.images == []


@pytest.mark.parametrize("name", ["first-run", "accepted", "mixed", "failed", "hostile", "cancelled"])
def test_every_report_of_ci_can_be_written_and_is_harmless(tmp_path: Path, name: str) -> None:
    found = structure(content(written(tmp_path, REPORTS[name](), Kept(session("Read a.py", '"Done."')))))
    check_harmless(found)
    assert len(found.ids) == len(set(found.ids))


def test_transcripts_are_those_of_sessions_that_did_not_pass_and_of_the_pair_that_is_compared(tmp_path: Path) -> None:
    usual = content(written(tmp_path, SMALL.report, SMALL))
    whole = content(written(tmp_path, SMALL.report, SMALL, PageOptions(all_transcripts=True)))
    runs = [(run, Side.HEAD) for run in SMALL.report.batch.runs] + [(run, Side.BASE) for run in SMALL.base]
    names = {f"{run.suite}-{side.value}-{run.trial}": run_outcome(run) for run, side in runs}
    bad = {name for name, outcome in names.items() if outcome is not Outcome.PASSED}
    pairs = {f"{run.suite}-{side.value}-1" for run, side in runs if run.trial == 1}
    assert {name for name in names if f'id="{name}-t1"' in usual} == bad | pairs
    assert len(bad | pairs) < len(names)
    assert {name for name in names if f'id="{name}-t1"' in whole} == names.keys()
    left = len(names) - len(bad | pairs)
    assert (
        f"The transcripts of {left} sessions of {len(names)} are left out, since they passed" in structure(usual).text
    )


def test_without_transcripts_no_word_of_a_session_is_in_it(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL.report, SMALL, PageOptions(include_transcripts=False))
    html = structure(content(path))
    assert "made without transcripts and patches" in html.text
    assert "Review the handler" not in html.text
    assert "+from src.http" not in html.text
    assert "The handler answers 500" in html.text
    assert {link for link in html.links if link.removeprefix("#") not in html.ids} == set()


def test_beyond_its_bound_the_longest_texts_are_cut_and_the_page_says_so(tmp_path: Path) -> None:
    lines = "one line of a file\n" * 6_000
    kept = Kept(session(f"Read big.txt -> {lines}", "Read small.txt -> short and whole", '"Done."'))
    path = written(tmp_path, SMALL.report, kept, PageOptions(all_transcripts=True, max_bytes=200_000))
    html = structure(content(path))
    assert "The transcripts of 8 sessions are too long to be shown whole" in html.text
    assert "short and whole" in html.text
    assert re.search(r"\[… [\d,]+ characters are left out here …\]", html.text)
    assert html.text.count("one line of a file") * len("one line of a file\n") < 225_000
    assert path.stat().st_size < 700_000


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = written(tmp_path, SMALL.report, SMALL)
    before = path.read_bytes()

    class Failing(Kept):
        def transcript(self, _run_id: str) -> SessionTranscript | None:
            raise MemoryError

    with pytest.raises(MemoryError):
        write_report(path, SMALL.report, Failing(session('"Done."')))
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
