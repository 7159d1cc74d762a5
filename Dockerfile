# Zelda CI as an image: the GitHub Action, and every command of `zelda` with nothing else installed (docs/action.md).
# A release pins the base: --build-arg BASE=docker.io/library/python@sha256:...
ARG BASE=docker.io/library/python:3.13-slim-bookworm

FROM ${BASE} AS dependencies
COPY requirements/ /requirements/
# pip stays in this stage: it installs into an environment that has none. Bytecode goes along: 40 MB, and a run starts more than a
# second earlier. It is checked against nothing, because not every builder keeps the times of files.
RUN python3 -m venv /opt/pip \
    && python3 -m venv --without-pip /opt/zelda \
    && /opt/pip/bin/pip install --no-cache-dir --disable-pip-version-check --no-compile \
        --require-hashes -r /requirements/build.txt \
    && /opt/pip/bin/pip --python /opt/zelda/bin/python3 install --no-cache-dir --disable-pip-version-check --no-compile \
        --require-hashes -r /requirements/runtime.txt \
    && /opt/zelda/bin/python3 -m compileall -q --invalidation-mode unchecked-hash /opt/zelda/lib

FROM dependencies AS package
COPY . /source/
# A prefix of its own, so that a change of Zelda is a layer of one megabyte on top of the dependencies.
RUN PYTHONPATH="$(echo /opt/pip/lib/python3*/site-packages)" /opt/pip/bin/pip --python /opt/zelda/bin/python3 install \
        --no-cache-dir --disable-pip-version-check --no-compile --no-deps --no-build-isolation --prefix /package /source \
    && /opt/zelda/bin/python3 -m compileall -q --invalidation-mode unchecked-hash /package/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="Zelda CI" \
      org.opencontainers.image.description="Regression tests for the files that steer Claude Code" \
      org.opencontainers.image.source="https://github.com/zelda-ci/zelda-ci" \
      org.opencontainers.image.documentation="https://github.com/zelda-ci/zelda-ci/blob/main/docs/action.md" \
      org.opencontainers.image.licenses="MIT"

# In an action HOME is not the image's, and the workspace is not ours: git must trust it at system level.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap ca-certificates git tini \
    && rm -rf /var/lib/apt/lists/* /var/cache/apt/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log \
    && git config --system --add safe.directory '*' \
    && ln -s /opt/zelda/bin/zelda /usr/local/bin/zelda \
    && mkdir -m 1777 /var/lib/zelda

COPY --from=dependencies /opt/zelda/ /opt/zelda/
COPY --from=package /package/ /opt/zelda/

# Only the link is on the PATH: the commands of a suite get the base's Python, not Zelda's. Worktrees vanish with the container, and lie
# where the unprivileged user of a session can reach them: neither below root's HOME, nor in the mounted folders of a runner. And not in
# /tmp, which a run at level uid has for itself only where nothing else of Zelda's lies in it.
#
# ZELDA_IMAGE has messages name what helps in an image.
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 ZELDA_IMAGE=1 ZELDA_WORKSPACES=/var/lib/zelda/runs

# The folder that GitHub's runner mounts and starts in; on a laptop it is for -v "$PWD:/github/workspace".
WORKDIR /github/workspace

# Not -g: Zelda ends its sessions itself, in order, and keeps what they had. -s: no complaint where something else is PID 1.
ENTRYPOINT ["/usr/bin/tini", "-s", "--", "zelda"]
CMD ["--help"]
