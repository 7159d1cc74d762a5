"""The whole corpus, in the order in which it is tried."""

from tests.hostile import credentials, own, persistence, repository, stream, writing

CORPUS = (
    *writing.ACTIONS,
    *credentials.ACTIONS,
    *persistence.ACTIONS,
    *stream.ACTIONS,
    *own.ACTIONS,
    # Last: they take repositories apart.
    *repository.ACTIONS,
)

CLASSES = {
    "w": "writing where only the developer may",
    "g": "through Git",
    "c": "credentials",
    "p": "persistence, spreading, resources",
    "z": "lying to Zelda",
    "n": "further ways",
}
