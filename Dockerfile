# Zelda CI as an image: the GitHub Action, and every command of `zelda` with nothing else installed (docs/action.md).
# A release pins the base: --build-arg BASE=docker.io/library/python@sha256:...
ARG BASE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE} AS dependencies
COPY requirements/ /requirements/
# pip stays in this stage: it installs into an environment that has none. Bytecode goes along: 28 MB, and a run starts more than a
# second earlier. It is checked against nothing, because not every builder keeps the times of files. What Zelda never loads needs none:
# the lexers of 500 languages, and tests.
RUN python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/zelda \
    && /opt/pip/bin/pip install --no-cache-dir --disable-pip-version-check --no-compile \
        --require-hashes -r /requirements/build.txt \
    && /opt/pip/bin/pip --python /opt/zelda/bin/python3 install --no-cache-dir --disable-pip-version-check --no-compile \
        --require-hashes -r /requirements/runtime.txt \
    && /opt/zelda/bin/python3 -m compileall -q -j 0 -x '/(pygments|tests)/' --invalidation-mode unchecked-hash /opt/zelda/lib

FROM dependencies AS package
COPY . /source/
# A prefix of its own, so that a change of Zelda is a layer of nine megabytes on top of the dependencies.
RUN PYTHONPATH="$(echo /opt/pip/lib/python3*/site-packages)" /opt/pip/bin/pip --python /opt/zelda/bin/python3 install \
        --no-cache-dir --disable-pip-version-check --no-compile --no-deps --no-build-isolation --prefix /package /source \
    && /opt/zelda/bin/python3 -m compileall -q -j 0 --invalidation-mode unchecked-hash /package/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="Zelda CI" \
      org.opencontainers.image.description="Regression tests for the files that steer Claude Code" \
      org.opencontainers.image.source="https://github.com/zelda-ci/zelda-ci" \
      org.opencontainers.image.documentation="https://github.com/zelda-ci/zelda-ci/blob/main/docs/action.md" \
      org.opencontainers.image.licenses="MIT"

# Debian's git depends on Perl, 48 MB for a handful of commands that Debian packages elsewhere, or that do with the perl-base of every
# Debian. So its package goes in without that dependency: dpkg and apt know it, and whatever else needs Perl or git brings it. Of the
# programs that it holds twice, one is a link. In an action HOME is not the image's, and the workspace is not ours: git must trust it at
# system level.
RUN apt-get update \
    && mkdir /tmp/git && cd /tmp/git && apt-get download git && dpkg-deb --raw-extract git_*.deb unpacked \
    && sed -i '/^Depends:/{s/ perl,//;s/ liberror-perl,//}' unpacked/DEBIAN/control \
    && for file in $(find unpacked/usr/bin -type f); do twin=unpacked/usr/lib/git-core/${file##*/}; \
        if cmp -s "$file" "$twin"; then ln -f "$file" "$twin"; fi; done \
    && dpkg-deb --build -Znone unpacked git.deb \
    && apt-get install --yes --no-install-recommends ./git.deb bubblewrap ca-certificates tini \
    && cd / && rm -rf /tmp/git /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log \
    && git config --system --add safe.directory '*' \
    && ln -s /opt/zelda/bin/zelda /usr/local/bin/zelda \
    && mkdir -m 1777 /var/lib/zelda

# Only the link is on the PATH: the commands of a suite get the base's Python, not Zelda's. Worktrees vanish with the container, and lie
# where the unprivileged user of a session can reach them: neither below root's HOME, nor in the mounted folders of a runner. And not in
# /tmp, which a run at level uid has for itself only where nothing else of Zelda's lies in it.
#
# ZELDA_IMAGE has messages name what helps in an image.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 ZELDA_IMAGE=1 ZELDA_WORKSPACES=/var/lib/zelda/runs

# The folder that GitHub's runner mounts and starts in; on a laptop it is for -v "$PWD:/github/workspace".
WORKDIR /github/workspace

# Not -g: Zelda ends its sessions itself, in order, and keeps what they had. -s: no complaint where something else is PID 1.
# Isolated: PYTHONPATH, which a workflow may set, may lead into the code under test.
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "/opt/zelda/bin/python3", "-IBu", "-m", "zelda_ci"]
CMD ["--help"]

# What changes most often comes last: a new version of Zelda with the same dependencies is the last layer, and nothing else.
COPY --from=dependencies /opt/zelda/ /opt/zelda/
COPY --from=package /package/ /opt/zelda/
