"""The steps of a release that decide something; `.github/workflows/release.yml` calls them, docs/releasing.md explains.

Whoever makes a release pushes `release/v1.2.3`. The tags that users name are made from it: `v1.2.3` once, on a commit
that differs from its parent only in the image of action.yml, and `v1` whenever a newer release of that major version is
there. Needs Python and git, nothing else. What a later step needs is printed as `name=value` lines.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import date
from typing import NamedTuple

TRIGGER = "release/"
ACTION = "action.yml"
TOOLS = ".github/release/docker-compose.yml"
IMAGE_LINE = re.compile(r"^  image: (.+)$", re.MULTILINE)
PINNED = re.compile(r"docker://[a-z0-9][a-z0-9._/:-]*@sha256:[0-9a-f]{64}")
WHO = {"NAME": "github-actions[bot]", "EMAIL": "41898282+github-actions[bot]@users.noreply.github.com"}


class RefusedError(Exception):
    """A release that must not be made; the text says what to do."""


class Version(NamedTuple):
    """A version as the package and the tag spell it: 1.2.3 or 1.2.3rc1. Compares by precedence."""

    major: int
    minor: int
    patch: int
    kind: str
    number: int
    """Of a pre-release, whose kind is a, b or rc; the kind of a final version is `~`, which sorts behind them."""

    @classmethod
    def of_tag(cls, tag: str) -> "Version | None":
        """The version that a tag names, or None if it names none."""
        found = re.fullmatch(r"v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:(a|b|rc)(0|[1-9]\d*))?", tag)
        if not found:
            return None
        major, minor, patch, kind, number = found.groups()
        return cls(int(major), int(minor), int(patch), kind or "~", int(number or 0))

    @property
    def is_final(self) -> bool:
        """Whether it is no pre-release."""
        return self.kind == "~"

    def __str__(self) -> str:
        end = "" if self.is_final else f"{self.kind}{self.number}"
        return f"{self.major}.{self.minor}.{self.patch}{end}"


class Release(NamedTuple):
    """What a tag `release/v1.2.3` asks for."""

    version: Version
    source: str
    """The commit that is released, as a full hash."""

    @property
    def tag(self) -> str:
        """The tag that users name."""
        return f"v{self.version}"

    @property
    def moving(self) -> str | None:
        """The tag that follows the releases of a major version. A pre-release moves none, and 0.x promises nothing."""
        return f"v{self.version.major}" if self.version.is_final and self.version.major else None


class RemoteTag(NamedTuple):
    """A tag as the remote has it."""

    object_hash: str
    """What the reference holds: the commit, or an annotated tag."""
    commit: str


def git(*words: str, env: dict[str, str] | None = None, data: str | None = None) -> str:
    """What git prints, byte for byte. Raises RefusedError with git's own words where it fails."""
    surroundings = {**os.environ, **(env or {})}
    done = subprocess.run(["git", *words], env=surroundings, input=data, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RefusedError(f"git {words[0]} failed: {done.stderr.strip() or f'exit code {done.returncode}'}")
    return done.stdout


def asked(trigger: str) -> Release:
    """What the pushed tag asks for. Raises RefusedError if its name is none of a release."""
    tag = trigger.removeprefix(TRIGGER)
    version = Version.of_tag(tag)
    if version is None:
        raise RefusedError(
            f"{trigger} is no release: the name is {TRIGGER}v and the version as zelda_ci/__init__.py spells it, "
            f"such as {TRIGGER}v1.2.3 or {TRIGGER}v1.2.3rc1 (not -rc.1)"
        )
    if tag == trigger:
        raise RefusedError(
            f"{tag} is not pushed by hand: the release workflow makes it, on a commit whose action.yml names the "
            f"image. Remove it (git push --delete origin {tag}) and push {TRIGGER}{tag} on the same commit"
        )
    return Release(version, git("rev-parse", "--verify", "HEAD^{commit}").strip())


def remote_tags() -> dict[str, RemoteTag]:
    """The tags as the remote has them now, by name."""
    lines = (line.split("\trefs/tags/") for line in git("ls-remote", "--tags", "origin").splitlines())
    found = {name: object_hash for object_hash, name in lines}
    # An annotated tag has a second line with its commit.
    return {name: RemoteTag(it, found.get(f"{name}^{{}}", it)) for name, it in found.items() if name[-3:] != "^{}"}


def final_versions(tags: Iterable[str]) -> list[Version]:
    """The versions among tags that are no pre-releases."""
    return [version for name in tags if (version := Version.of_tag(name)) and version.is_final]


def changelog(release: Release) -> str:
    """The text of the version's section. Raises RefusedError if section, date or link are missing or out of place."""
    text, wanted = git("show", "HEAD:CHANGELOG.md"), str(release.version)
    _, *parts = re.split(r"^## \[([^]]+)\](.*)$", text, flags=re.MULTILINE)
    if (names := parts[:6:3]) != ["Unreleased", wanted]:
        raise RefusedError(
            f"CHANGELOG.md must begin with ## [Unreleased] and ## [{wanted}] - DATE; it begins with {names}"
        )
    _, _, unreleased, _, after, section = parts[:6]
    if unreleased.strip():
        raise RefusedError(f"CHANGELOG.md has entries under [Unreleased]: move them under [{wanted}]")
    try:
        date.fromisoformat(after.strip().removeprefix("- "))
    except ValueError:
        raise RefusedError(f"CHANGELOG.md gives [{wanted}] no date: ## [{wanted}] - 2026-01-31") from None
    body = re.split(r"^\[[^]]+\]: ", section, maxsplit=1, flags=re.MULTILINE)[0].strip()
    if not body:
        raise RefusedError(f"CHANGELOG.md says nothing under [{wanted}]")
    if not re.search(rf"^\[{re.escape(wanted)}\]: \S+(/|\.\.\.){re.escape(release.tag)}$", text, re.MULTILINE):
        raise RefusedError(
            f"CHANGELOG.md has no link for the version at its end: [{wanted}]: https://.../{release.tag}"
        )
    return body


def with_image(action: str, image: str) -> str:
    """action.yml with another image; nothing else of it changes."""
    written, count = IMAGE_LINE.subn(lambda _: f"  image: {image}", action)
    if count != 1:
        raise RefusedError(f"{ACTION} must have one line `  image: ...`, and has {count}")
    return written


def check_action(commit: str) -> None:
    """The branch builds its image; only a released action.yml names one."""
    if IMAGE_LINE.findall(git("show", f"{commit}:{ACTION}")) != ["Dockerfile"]:
        raise RefusedError(f"{ACTION} of the released commit must say `image: Dockerfile`")


def released_image(release: Release, commit: str) -> str:
    """The image in the action.yml of a release that is there already. Raises RefusedError if it is not one of ours.

    Ours is a commit whose only parent is the released one, with another image by digest and no other change.
    """
    git("fetch", "--quiet", "--no-tags", "origin", f"refs/tags/{release.tag}")
    lines = IMAGE_LINE.findall(git("show", f"{commit}:{ACTION}"))
    image = lines[0] if len(lines) == 1 else ""
    if not PINNED.fullmatch(image) or made(release, image.removeprefix("docker://")) != commit:
        raise RefusedError(
            f"{release.tag} is there already, on {commit}, which was not made from {release.source}. Users may have "
            "it, so it stays: give the change a new version. If somebody moved it, find out who, and put it back"
        )
    return image.removeprefix("docker://")


def made(release: Release, image: str) -> str:
    """The commit that users get, as a full hash. The same source and image always make the same commit."""
    if not PINNED.fullmatch(f"docker://{image}"):
        raise RefusedError(f"{image} is no image by digest (ghcr.io/owner/name@sha256:...)")
    action = with_image(git("show", f"{release.source}:{ACTION}"), f"docker://{image}")
    day = git("show", "--no-patch", "--format=%ct +0000", release.source).strip()
    who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in WHO.items()}
    words = f"Release {release.version}\n\nThe action pulls {image}, which was built from the parent of this commit."
    with tempfile.TemporaryDirectory() as folder:
        env = {**who, "GIT_AUTHOR_DATE": day, "GIT_COMMITTER_DATE": day, "GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", release.source, env=env)
        blob = git("hash-object", "-w", "--stdin", data=action).strip()
        git("update-index", "--cacheinfo", f"100644,{blob},{ACTION}", env=env)
        tree = git("write-tree", env=env).strip()
        return git("commit-tree", tree, "-p", release.source, "-m", words, env=env).strip()


def check(release: Release) -> dict[str, str]:
    """Refuse what cannot become a release before anything is built."""
    said = re.search(r'^__version__ = "(.*)"$', git("show", "HEAD:zelda_ci/__init__.py"), re.MULTILINE)
    if said is None or said[1] != str(release.version):
        raise RefusedError(
            f"the tag says {release.version}, zelda_ci/__init__.py says {said[1] if said else 'nothing'}: "
            "they must be the same"
        )
    changelog(release)
    # The commit was reviewed where it is in one of these.
    branches = ("main", f"maintenance/{release.version.major}.{release.version.minor}")
    is_in = ["git", "merge-base", "--is-ancestor", release.source]
    if all(subprocess.run([*is_in, f"origin/{it}"], capture_output=True, check=False).returncode for it in branches):
        raise RefusedError(f"{release.source} is neither in {branches[0]} nor in {branches[1]}: merge it there first")
    check_action(release.source)
    if there := remote_tags().get(release.tag):
        released_image(release, there.commit)
    base = re.search(r"^ARG BASE=(\S+)$", git("show", "HEAD:Dockerfile"), re.MULTILINE)
    if base is None:
        raise RefusedError("the Dockerfile has no line `ARG BASE=...`")
    tools = dict(
        re.findall(r"^  (\w+):\n    image: (\S+@sha256:[0-9a-f]{64})$", git("show", f"HEAD:{TOOLS}"), re.MULTILINE)
    )
    if set(tools) != {"buildkit", "scanner"}:
        raise RefusedError(f"{TOOLS} must name buildkit and scanner, each by digest")
    return {"version": str(release.version), "tag": release.tag, "base": base[1], **tools}


def tag(release: Release, image: str) -> dict[str, str]:
    """Make `v1.2.3` with that image, or keep the one that an earlier attempt made."""
    before = remote_tags()
    if there := before.get(release.tag):
        image, commit = released_image(release, there.commit), there.commit
    else:
        check_action(release.source)
        commit = made(release, image)
        # Not forced: if somebody was faster, this fails and the next attempt looks at what is there.
        git("push", "--quiet", "origin", f"{commit}:refs/tags/{release.tag}")
    is_latest = max([*final_versions(before), release.version]) == release.version
    kind = "--latest" if is_latest else "--latest=false"
    return {"commit": commit, "image": image, "kind": kind if release.version.is_final else "--prerelease"}


def move(release: Release) -> dict[str, str]:
    """Let `v1` follow to `v1.2.3`, forward only; says `moving=v1` where the two are the same in the end."""
    name, tags = release.moving, remote_tags()
    if name is None:
        return {"moving": ""}
    if release.tag not in tags:
        raise RefusedError(f"{release.tag} is not there: {name} can only follow a release")
    to, before = tags[release.tag].commit, tags.get(name)
    released_image(release, to)
    newest = max(version for version in final_versions(tags) if version.major == release.version.major)
    if newest != release.version:
        print(f"{name} stays: v{newest} is newer than {release.tag}", file=sys.stderr)
        return {"moving": ""}
    if before and before.commit not in {tags[f"v{version}"].commit for version in final_versions(tags)}:
        print(f"{name} was on {before.commit}, which is no release: somebody moved it", file=sys.stderr)
    # Refused where another release has moved it meanwhile: the next attempt looks again whose turn it is.
    lease = f"--force-with-lease=refs/tags/{name}:{before.object_hash if before else ''}"
    git("push", "--quiet", lease, "origin", f"{to}:refs/tags/{name}")
    return {"moving": name}


STEPS: dict[str, tuple[Callable[..., dict[str, str] | str], str]] = {
    "check": (check, "refuse what does not fit: version, changelog, branch, action.yml, an existing tag"),
    "notes": (changelog, "print the changelog's section"),
    "tag": (tag, "make v1.2.3, with the image in action.yml"),
    "move": (move, "let v1 follow, if nothing newer is there"),
}


def main(arguments: list[str]) -> int:
    """Run one step, and print what it says to the later ones."""
    parser = argparse.ArgumentParser(prog="release", description="The steps of a release (docs/releasing.md).")
    steps = parser.add_subparsers(dest="step", required=True)
    for name, (_, words) in STEPS.items():
        step = steps.add_parser(name, help=words)
        step.add_argument("trigger", help="the tag that was pushed: release/v1.2.3")
        if name == "tag":
            step.add_argument("--image", required=True, help="ghcr.io/owner/name@sha256:...")
    given = parser.parse_args(arguments)
    try:
        said = STEPS[given.step][0](asked(given.trigger), *([given.image] if given.step == "tag" else []))
    except RefusedError as reason:
        print(f"error: {reason}", file=sys.stderr)
        return 1
    print(said if isinstance(said, str) else "\n".join(f"{name}={value}" for name, value in said.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
