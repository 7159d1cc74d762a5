"""Several runners in one command: one after the other, side by side, under prefixes."""

from cases import Case, Runner, counts
from javascript_runtimes import NODE_PASSING
from mocha_and_peers import MOCHA_MIXED, MOCHA_PASSING
from python_sources import UNIT_PASSING

ROOT = '{"private": true, "workspaces": ["packages/*"]}'
MONOREPO = Runner("monorepo", "npm --version", npm=("mocha", "concurrently"), pip=())
PAIR = {
    "packages/a/package.json": '{"name": "a", "version": "1.0.0", "scripts": {"test": "mocha test.js"}}',
    "packages/b/package.json": (
        '{"name": "b", "version": "1.0.0", "scripts": {"test": "node --test --test-reporter=spec"}}'
    ),
    "packages/a/test.js": MOCHA_MIXED,
    "packages/b/b.test.js": NODE_PASSING,
    "package.json": ROOT,
}
TWO_MOCHAS = {
    **PAIR,
    "packages/b/package.json": PAIR["packages/a/package.json"].replace('"a"', '"b"'),
    "packages/b/test.js": MOCHA_PASSING,
}
MOCHA = counts("Mocha", 3, 2, skipped=1)
CASES = (
    Case(MONOREPO, "workspaces", PAIR, "npm test --workspaces", {"runners": [MOCHA, counts("node:test", 2)]}),
    Case(MONOREPO, "same-runner", TWO_MOCHAS, "npm test --workspaces", {"runners": [MOCHA, counts("Mocha", 2)]}),
    Case(
        MONOREPO,
        "prefixed",
        TWO_MOCHAS,
        "concurrently --names a,b 'cd packages/a && npx mocha test.js' 'cd packages/b && npx mocha test.js'",
        {"runners": [MOCHA, counts("Mocha", 2)]},
    ),
    Case(
        MONOREPO,
        "two-languages",
        {**PAIR, "tests/test_sums.py": UNIT_PASSING},
        "python3 -m unittest discover tests; cd packages/a && npx mocha test.js",
        {"runners": [counts("unittest", 2), MOCHA]},
    ),
    Case(
        MONOREPO,
        "side-by-side",
        {**PAIR, "tests/test_sums.py": UNIT_PASSING},
        "python3 -m unittest discover tests & (cd packages/a && npx mocha test.js) & wait",
        {"runners": [counts("unittest", 2), MOCHA]},
    ),
)
