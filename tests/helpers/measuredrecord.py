"""A record of published measurements, written by hand."""

from synthmap.published.measured import AverageError, BandShare, DensityClass, Estimate, Measured, NoiseStep


def estimate(value: float) -> Estimate:
    return Estimate(value=value, low=value - 1, high=value + 1)


def measured(release: str, manifest_sha256: str, **changes) -> Measured:
    """Return a sealed record."""
    values = {
        "release": release,
        "manifest_sha256": manifest_sha256,
        "created": "2026-01-01T00:00:00+00:00",
        "dataset": "a",
        "name": f"{release}.metrics",
        "epsilon": 0.5,
        "max_jobs_per_worker": 1,
        "cap_km": 80.0,
        "coverage": 0.95,
        "densities": [DensityClass(name="dense", per_km2_from=0, per_km2_to=None, destinations=2, workers=9)],
        "lengths": [
            BandShare(density="all", km_from=0, km_to=5, synthetic_workers=9,
                      workers=estimate(8), share_error=estimate(0)),
            BandShare(density="all", km_from=None, km_to=None, origin="elsewhere", synthetic_workers=0,
                      workers=estimate(1), share_error=estimate(0.1)),
        ],
        "averages": [
            AverageError(density="all", km_from=None, km_to=None, destinations=2, workers=9,
                         mean_absolute_error_km=estimate(2), mean_error_km=estimate(-1)),
            AverageError(density="all", km_from=80, km_to=None, destinations=2, workers=9,
                         mean_absolute_error_km=estimate(3), mean_error_km=estimate(-2)),
            AverageError(density="dense", km_from=None, km_to=None, destinations=2, workers=9,
                         mean_absolute_error_km=estimate(4), mean_error_km=estimate(-3)),
        ],
        "steps": [NoiseStep(name="x", sensitivity=2, epsilon=0.5, scale=4.0, values=[1, 2])],
        "statement": ["Measured with ε = 0.5."],
        "software": "synthmap 0",
    }  # fmt: skip
    return Measured(**(values | changes)).sealed()
