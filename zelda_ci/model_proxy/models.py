"""Which models a run may ask: that of its suite, others the suite names, and known ones that cost no more."""

from collections.abc import Iterable
from dataclasses import dataclass

from zelda_ci.model_proxy import pricing


@dataclass(frozen=True)
class Models:
    """The models of one run, `main` being the session's own.

    Claude Code's built-in sub-agents inherit the session's model; those of the project can name another. A smaller one
    is theirs to choose, a dearer one is the suite's.
    """

    main: str
    more: frozenset[str] = frozenset()

    @classmethod
    def of(cls, main: str, more: Iterable[str] = ()) -> "Models":
        """The models in the spelling of requests, where the mark of a long context does not appear."""
        return cls(_plain(main), frozenset(map(_plain, more)))

    def allow(self, asked: object) -> bool:
        """Whether a request may name this model."""
        if not isinstance(asked, str):
            return False
        model = _plain(asked)
        return model == self.main or model in self.more or self._is_smaller(model)

    def _is_smaller(self, model: str) -> bool:
        same_provider = _provider(model) == _provider(self.main)
        return same_provider and pricing.costs_no_more(model, self.main)


def _plain(model: str) -> str:
    return model.removesuffix("[1m]")


def _provider(model: str) -> str:
    """What stands before the name: a gateway routes by it."""
    return model[: model.find(pricing.base_name(model))]
