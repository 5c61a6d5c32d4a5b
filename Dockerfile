# Two programs, one wall. `pipeline` reads confidential tables and writes releases; `service` only ever sees finished
# releases and holds none of the code that reads anything else.
#   docker build --target pipeline -t synthmap-pipeline .
#   docker build --target service  -t synthmap-service .

FROM python:3.13-slim AS base
ENV PIP_NO_CACHE_DIR=1 PYTHONDONTWRITEBYTECODE=1 NUMBA_CACHE_DIR=/var/cache/numba
RUN useradd --create-home --uid 10001 synthmap \
    && install -d -o synthmap -g synthmap /var/cache/numba /data /releases
WORKDIR /app
ENV PYTHONPATH=/app

FROM base AS pipeline
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY synthmap/ synthmap/
COPY pipelines/ pipelines/
RUN pip install --constraint constraints.txt .
USER 10001
VOLUME ["/data", "/releases"]
ENTRYPOINT ["synthmap"]
CMD ["--help"]

# Reads releases; until the HTTP service is part of the project it verifies them.
FROM base AS service
COPY constraints.txt ./
RUN pip install --constraint constraints.txt numpy polars pyarrow pydantic
COPY synthmap/__init__.py synthmap/errors.py synthmap/
COPY synthmap/geography/__init__.py synthmap/geography/zones.py synthmap/geography/
COPY synthmap/privacy/__init__.py synthmap/privacy/composition.py synthmap/privacy/
COPY synthmap/release/ synthmap/release/
USER 10001
VOLUME ["/releases"]
ENTRYPOINT ["python", "-m", "synthmap.release"]
CMD ["/releases"]
