"""The environment of session and commands: built from nothing by an allow-list, so that no credential slips in."""

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from zelda_ci.domain.suite import MODEL_CREDENTIALS
from zelda_ci.errors import WorkspaceError
from zelda_ci.sandbox.readable_paths import TOOLCHAINS
from zelda_ci.sandbox.run_folder import WorkspaceFolder
from zelda_ci.workspace.folder import MARKER

TAKEN_OVER = frozenset({
    "COLORTERM", "LANG", "LANGUAGE", "LOGNAME", "TERM", "TZ", "USER",
    # A certificate authority of one's own: nothing could be installed without it.
    "CARGO_HTTP_CAINFO", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE", "PIP_CERT",
    "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
    # Where a toolchain lies.
    "ANDROID_HOME", "DOTNET_ROOT", "GOROOT", "JAVA_HOME",
})  # fmt: skip


# Zelda's own business: a session never holds the key, and has folders of its own.
REFUSED = frozenset({
    *MODEL_CREDENTIALS, "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CONFIG_DIR", "GITHUB_WORKSPACE",
    "BASH_ENV", "GLIBC_TUNABLES", "HOME", "PATH", "PWD", "SSH_AUTH_SOCK", "TMPDIR", "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR", MARKER,
})  # fmt: skip

REFUSED_STARTS = (
    "GIT_", "LD_", "DYLD_", "ACTIONS_", "ANTHROPIC_UNIX_SOCKET",
    "CLAUDE_CODE_API_", "CLAUDE_CODE_EXTRA_BODY",
    "CLAUDE_CODE_PROVIDER_", "CLAUDE_CODE_SHELL", "CLAUDE_CODE_SUBPROCESS_ENV_SCRUB", "CLAUDE_CODE_TMPDIR",
)  # fmt: skip

# With these the CLI would go to another provider, past the proxy that holds the key and counts the cost.
OTHER_PROVIDERS = (
    "ANTHROPIC_BEDROCK_", "ANTHROPIC_FOUNDRY_", "ANTHROPIC_VERTEX_", "AWS_BEARER_TOKEN_BEDROCK", "CLAUDE_CODE_SKIP_",
    "CLAUDE_CODE_USE_",
)  # fmt: skip

GIT_IDENTITY = """\
[user]
\tname = Zelda CI
\temail = zelda-ci@localhost
[init]
\tdefaultBranch = main
[commit]
\tgpgSign = false
[gc]
\tauto = 0
"""


def build_environment(
    folder: WorkspaceFolder, project: Path, environ: Mapping[str, str], names: Iterable[str]
) -> dict[str, str]:
    """The complete environment of a run, and in its HOME the configuration with which git can commit.

    Args:
        folder: The run's folder, whose `home` exists.
        project: Programs from the project itself, such as those of an activated virtual environment, stay out: they
            would run the user's files in place of the tested ones, and install into them.
        environ: The user's environment.
        names: Variables that the suite asks for.
    """
    check_names(names)
    configuration = folder.home / ".gitconfig"
    configuration.write_text(GIT_IDENTITY)
    passed_on = {name: environ[name] for name in names if name in environ}
    path = search_path(environ.get("PATH", os.defpath), project)
    # Claude Code takes SHELL for its commands; the user's may be one that it does not know, such as fish.
    shell = shutil.which("bash", path=path)
    return {
        **{name: value for name, value in environ.items() if name in TAKEN_OVER or name.startswith("LC_")},
        **_toolchains(environ),
        **passed_on,
        **_around_proxies(passed_on),
        "PATH": path,
        **({"SHELL": shell} if shell else {}),
        "HOME": str(folder.home),
        "TMPDIR": str(folder.tmp),
        "CI": "true",
        "GIT_CONFIG_GLOBAL": str(configuration),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CEILING_DIRECTORIES": str(folder.path),
        "GIT_TERMINAL_PROMPT": "0",
        MARKER: str(folder.path),
    }


def check_names(names: Iterable[str]) -> None:
    """Refuse names that would break the isolation.

    Raises:
        WorkspaceError: One of them is Zelda's own business.
    """
    for name in names:
        if name.startswith(OTHER_PROVIDERS):
            raise WorkspaceError(
                f"execution.env lists {name}, but sessions go through Zelda's own proxy to the Anthropic API only.",
                hint="Remove it: Amazon Bedrock, Google Vertex and other providers are not supported.",
                code="ENVIRONMENT_REFUSED",
            )
        if name in REFUSED or name.startswith(REFUSED_STARTS):
            raise WorkspaceError(
                f"execution.env lists {name}, which a session never gets.",
                hint="Remove it there: Zelda's proxy holds the key, and every session has folders of its own.",
                code="ENVIRONMENT_REFUSED",
            )


def search_path(path: str, project: Path) -> str:
    """The folders of PATH that are absolute and lie outside the project, links followed."""
    entries = (Path(entry) for entry in path.split(os.pathsep) if entry)
    real = Path(os.path.realpath(project))
    return os.pathsep.join(
        str(entry)
        for entry in entries
        if entry.is_absolute()
        and not entry.is_relative_to(real)
        and not Path(os.path.realpath(entry)).is_relative_to(real)
    )


def _toolchains(environ: Mapping[str, str]) -> dict[str, str]:
    home = environ.get("HOME")
    places = {name: environ.get(name) or (home and f"{home}/{place}") for name, place in TOOLCHAINS.items()}
    return {name: place for name, place in places.items() if place and Path(place).is_dir()}


def _around_proxies(variables: Mapping[str, str]) -> dict[str, str]:
    # Where a proxy is passed on, the way to Zelda's own on this machine must not lead through it.
    if not any(name.lower().endswith("_proxy") for name in variables):
        return {}
    others = [variables[name] for name in ("NO_PROXY", "no_proxy") if name in variables]
    value = ",".join(["127.0.0.1", "localhost", *others])
    return {"NO_PROXY": value, "no_proxy": value}
