"""What is known of a run so far: it grows while the run goes on, and is a result at every moment."""

from datetime import UTC, datetime
from typing import Any

from zelda_ci.domain.run import Failure, RunResult
from zelda_ci.domain.session import AssistantSaid, SessionRecord, SessionStatus, SessionTranscript, Started, ToolCalled
from zelda_ci.domain.session_log import assemble
from zelda_ci.errors import StorageError, ZeldaError
from zelda_ci.redact import Redactor
from zelda_ci.storage.run_folder import RunFolder


class RunLedger:
    """One run's result in the making. Until something better is known, the run counts as interrupted."""

    def __init__(self, folder: RunFolder, provisional: RunResult, redact: Redactor) -> None:
        self.folder = folder
        self.known = provisional
        self.records: list[SessionRecord] = []
        self.wall_seconds = 0.0
        self._redact = redact
        self._prompt = redact(provisional.config.prompt)
        self._responses: set[str] = set()
        folder.announce(provisional, self._prompt)

    @property
    def turns(self) -> int:
        """Model responses of the main thread so far."""
        return len(self._responses)

    def learn(self, **facts: Any) -> None:
        """Replace fields of the result by what is known now."""
        self.known = self.known.model_copy(update=facts)

    def hear(self, record: SessionRecord) -> None:
        """Take a record of the session: to disk first.

        Raises:
            StorageError: It could not be kept on disk.
        """
        self.folder.append(record)
        self.records.append(record)
        match record:
            case Started():
                self.learn(versions=self.known.versions.model_copy(update={"cli": record.cli_version}))
            case AssistantSaid() | ToolCalled() if record.parent_tool_call_id is None and record.model != "<synthetic>":
                self._responses.add(record.message_id)
            case _:
                pass

    def end(self, status: SessionStatus, failure: Failure | None = None) -> None:
        """Settle how the run ended; `failure` is absent when the session completed."""
        self.learn(status=status, failure=failure)

    def fail(self, exc: ZeldaError) -> None:
        """Settle that the run could not be carried out."""
        hint = self._redact(exc.hint) if exc.hint else None
        self.end(SessionStatus.FAILED, Failure(code=exc.code, message=self._redact(exc.message), hint=hint))

    def transcript(self) -> SessionTranscript:
        """The session as far as it was heard."""
        return assemble(
            self.records,
            run_id=self.folder.run_id,
            prompt=self._prompt,
            started_at=self.known.started_at,
            status=self.known.status,
            reason=self.known.failure.message if self.known.failure else None,
            wall_seconds=self.wall_seconds or (self.records[-1].at if self.records else 0.0),
        )

    def store(self, transcript: SessionTranscript) -> RunResult:
        """Write result and transcript. Where that fails, the result says so and what was captured stays on disk."""
        self.learn(finished_at=datetime.now(UTC))
        try:
            self.folder.finish(self.known, transcript)
        except StorageError as exc:
            self.fail(exc)
            self.folder.close()
        return self.known
