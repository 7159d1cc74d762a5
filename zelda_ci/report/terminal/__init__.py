"""Everything that is shown on a terminal; with the commands, the only user of rich."""

from zelda_ci.report.terminal.pages import is_plain, open_console
from zelda_ci.report.terminal.progress import Progress

__all__ = ["Progress", "is_plain", "open_console"]
