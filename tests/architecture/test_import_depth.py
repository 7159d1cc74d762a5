"""The stored contract is a ground and no tower: a module of it rests on few others."""

import ast
from functools import cache
from pathlib import Path

DOMAIN = Path(__file__).parents[2] / "zelda_ci/domain"
MAX_DEPTH = 9


def imported(module: str) -> set[str]:
    """Modules of the package that one of it imports."""
    found = set()
    for node in ast.walk(ast.parse((DOMAIN / f"{module}.py").read_text("utf-8"))):
        match node:
            case ast.ImportFrom(module="zelda_ci.domain"):
                found |= {alias.name for alias in node.names}
            case ast.ImportFrom(module=str(name)) if name.startswith("zelda_ci.domain."):
                found.add(name.split(".")[2])
    return found


@cache
def depth(module: str) -> int:
    return 1 + max(map(depth, imported(module)), default=0)


def test_no_module_of_the_domain_rests_on_a_tower_of_others() -> None:
    depths = {path.stem: depth(path.stem) for path in DOMAIN.glob("*.py")}
    assert depths["comparison"] > depths["base"] == 1
    assert {module: deep for module, deep in depths.items() if deep > MAX_DEPTH} == {}
