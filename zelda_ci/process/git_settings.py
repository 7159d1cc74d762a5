"""Settings under which git looks at a repository of the user's, which a stranger may have filled."""

from collections.abc import Mapping

SETTINGS: Mapping[str, str] = {
    # It may be another user's, as in a container.
    "safe.directory": "*",
    # A git directory can be committed as an ordinary folder: only one that is named, or a `.git`, is a repository.
    "safe.bareRepository": "explicit",
    # Both would run programs.
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
}

OPTIONS = tuple(word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}"))


def variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as variables of git's environment: they win over those of every file."""
    pairs = {f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(settings)}
    pairs |= {f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(settings.values())}
    return {"GIT_CONFIG_COUNT": str(len(settings)), **pairs}
