"""Build the image and use it: `python3 scripts/machines/image_test.py [CHECK...]`.

With Docker where its daemon answers; else, as root, with buildah, on a base made of Debian packages (`--base NAME`
takes another one). Needs nothing but Python. Exit code 0: all well; 1: a check failed; 77: neither engine is here, and
nothing was tested.
"""

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path

import base_image
from engines import Buildah, BuildError, Docker, Engine
from image_checks import CHECKS, REPOSITORY, Bench

SKIPPED = 77
PACKAGES = ("ca-certificates", "python3", "python3-venv")
"""What is there in the stand-in for the base image."""


def main() -> int:
    """Build, check, report."""
    parser = argparse.ArgumentParser(prog="image-test", description="Build the image and use it.")
    names = [check.__name__ for check in CHECKS]
    parser.add_argument("checks", nargs="*", metavar="CHECK", choices=[[], *names], help=f"only {', '.join(names)}")
    parser.add_argument("--base", help="base image in place of the one that the Dockerfile names, or of the stand-in")
    asked = parser.parse_args()
    begun = time.monotonic()
    engine: Engine = Docker() if Docker.answers() else Buildah()
    try:
        base = asked.base or stand_in(engine)
        build(engine, base)
        failed = check(engine, asked.checks)
    except base_image.CannotBuildError as reason:
        print(f"image test skipped: {reason}")
        return SKIPPED
    except BuildError as failure:
        print(failure)
        return 1
    finally:
        engine.close()
    verdict = f"failed: {', '.join(failed)}" if failed else "all well"
    print(f"image test: {verdict}, {time.monotonic() - begun:.0f} s in all")
    return 1 if failed else 0


def stand_in(engine: Engine) -> str | None:
    """A base that needs no registry, for the engine that is chosen where there is none."""
    if not isinstance(engine, Buildah):
        return None
    if os.geteuid() != 0:
        raise base_image.CannotBuildError("no Docker daemon answers, and buildah in a chroot needs root")
    if missing := base_image.missing("buildah", "debootstrap"):
        names = " and no ".join(missing)
        raise base_image.CannotBuildError(
            f"no Docker daemon answers, and there is no {names} (apt-get install {' '.join(missing)})"
        )
    begun = time.monotonic()
    name = engine.import_base(base_image.archive(PACKAGES, slim=True))
    print(f"base made of Debian packages: {time.monotonic() - begun:.0f} s", flush=True)
    return name


def build(engine: Engine, base: str | None) -> None:
    """Build the image, and say how long it took and how large it is."""
    begun = time.monotonic()
    engine.build(REPOSITORY, base)
    layers = " + ".join(f"{size / 1e6:.0f}" for size in engine.sizes())
    print(f"image built: {layers} MB on its base, {time.monotonic() - begun:.0f} s", flush=True)


def check(engine: Engine, names: list[str]) -> list[str]:
    """The names of the checks that failed."""
    failed = []
    with tempfile.TemporaryDirectory(prefix="zelda-image-test-") as folder:
        # Others than root must be able to reach what is mounted from there.
        Path(folder).chmod(0o755)
        for each in CHECKS:
            if names and each.__name__ not in names:
                continue
            begun = time.monotonic()
            try:
                each(Bench(engine, Path(folder)))
            except Exception:  # noqa: BLE001 - whatever it was, the other checks are worth knowing
                failed.append(each.__name__)
                traceback.print_exc()
            mark = "FAIL" if each.__name__ in failed else "PASS"
            print(f"  {mark}  {each.__name__:18} {time.monotonic() - begun:5.1f} s", flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
