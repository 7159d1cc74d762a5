"""The whole corpus, in the order in which it is tried."""

from tests.hostile import control, credentials, deceit, kernel, own, persistence, repository, stream, writing

CORPUS = (
    *control.ACTIONS,
    *writing.ACTIONS,
    *credentials.ACTIONS,
    *persistence.ACTIONS,
    *stream.ACTIONS,
    *repository.ACTIONS,
    *own.ACTIONS,
    *deceit.ACTIONS,
    *kernel.ACTIONS,
    # Last: it removes what others look for.
    *repository.COLLECTED,
)

CONTROLS = frozenset(action.id for action in control.ACTIONS)

CLASSES = {
    "w": "writing where only the developer may",
    "g": "through Git",
    "c": "credentials",
    "p": "persistence, spreading, resources",
    "z": "lying to Zelda",
    "n": "further ways",
}
