# Two stages: the first builds the locked packages into a virtual environment, the second holds only that.
FROM python:3.13-slim AS build

COPY --from=ghcr.io/astral-sh/uv:0.13 /uv /usr/local/bin/uv
ENV UV_COMPILE_BYTECODE=1 UV_LINK_MODE=copy UV_PYTHON_DOWNLOADS=never
WORKDIR /src

# The dependencies alone first: they change less often than the code, and this layer is kept.
COPY pyproject.toml uv.lock ./
COPY sdk/python/pyproject.toml sdk/python/pyproject.toml
RUN uv sync --frozen --no-dev --no-install-workspace

COPY README.md LICENSE ./
COPY controlplane controlplane
COPY migrations migrations
COPY examples examples
COPY sdk/python sdk/python
RUN uv sync --frozen --no-dev --no-editable

FROM python:3.13-slim

RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin holdshort
COPY --from=build /src/.venv /src/.venv
ENV PATH=/src/.venv/bin:$PATH PYTHONUNBUFFERED=1 HOLDSHORT_LOG_FORMAT=json
USER 10001:10001
EXPOSE 8080
# It starts with HOLDSHORT_DATABASE_URL, HOLDSHORT_MASTER_KEYS, HOLDSHORT_WEBHOOK_SECRETS and a first API key only:
# `docker run --rm IMAGE secrets` prints new ones. Nobody gets in without a key, as others reach a container.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=15s --retries=3 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8080/health/ready', timeout=4)"]
ENTRYPOINT ["holdshort"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8080"]
