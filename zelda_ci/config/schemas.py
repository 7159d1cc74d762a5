"""The two files a user writes: which keys they have, of which type."""

from pydantic import ConfigDict, Field

from zelda_ci.domain.suite import Name, ProjectPath, Setting, SharedSettings, Text, WebAddress

CONFIG_FILE = "zelda.config.yaml"


class ProjectKeys(Setting):
    """Keys that only the project's configuration has."""

    test_dir: ProjectPath = Field("zelda", description="Folder of the suites: every test-*.yaml in it is one.")
    results_dir: ProjectPath = Field(
        ".zelda", description="Folder for results and running workspaces; git must ignore it."
    )
    gateway_url: WebAddress | None = Field(
        None,
        description="Portkey gateway through which the judge is asked; its key comes from PORTKEY_API_KEY.",
        examples=["https://api.portkey.ai"],
    )


class ProjectConfig(SharedSettings, ProjectKeys):
    """Zelda CI: settings of a project, which each suite may override."""

    model_config = ConfigDict(extra="forbid")


class SuiteKeys(Setting):
    """Keys that only a suite has."""

    name: Name | None = Field(
        None,
        description="Name of the suite, unique in the project; without it, the file's name without test- and ending.",
        examples=["rest-endpoint"],
    )
    description: Text | None = Field(
        None, description="What the suite is about, for people.", examples=["Adding an endpoint follows our rules."]
    )
    prompt: Text | None = Field(
        None, description="The task that Claude Code gets.", examples=["Add a GET /health endpoint."]
    )
    prompt_file: Text | None = Field(
        None,
        description="File that holds the prompt, relative to the suite's file, in the project; instead of prompt.",
        examples=["prompts/health-endpoint.md"],
    )
    acceptance_criteria: tuple[Text, ...] = Field(
        (),
        description="What must be true of the result: one checkable sentence each.",
        examples=[["GET /health answers 200."]],
    )
    tags: tuple[Text, ...] = Field((), description="Words by which suites can be chosen.", examples=[["backend"]])


class SuiteConfig(SharedSettings, SuiteKeys):
    """Zelda CI: one suite. Keys that the project's configuration has too override it, key by key.

    Only keys in `model_fields_set`, at every level, were given: the defaults here mean nothing.
    """

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"oneOf": [{"required": ["prompt"]}, {"required": ["promptFile"]}]}
    )


Config = SharedSettings
"""Either of the two."""
