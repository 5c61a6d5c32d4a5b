"""Noise for whole numbers: scales that OpenDP itself states to suffice, and clear refusals."""

import sys
from fractions import Fraction

import numpy as np
import pytest

from synthmap.confidential.measurements import Measurement
from synthmap.confidential.noisy import add_noise, need_opendp, scale_of
from synthmap.errors import ConfigurationError, PrivacyParameterError


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 80_000, 20_040_000])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(0.1), Fraction(1, 10), Fraction(7, 3), Fraction(50)])
def test_the_scale_is_the_least_that_keeps_epsilon(sensitivity, epsilon):
    import opendp.prelude as dp

    scale = scale_of(sensitivity, epsilon)
    domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    assert Fraction(dp.m.make_laplace(domain, metric, scale=scale).map(sensitivity)) <= epsilon
    assert scale == pytest.approx(float(sensitivity / epsilon), rel=1e-12)


@pytest.mark.parametrize("epsilon", [Fraction(0), Fraction(-1), Fraction(1, 2**60)])
def test_an_epsilon_out_of_range_is_refused(epsilon):
    with pytest.raises(PrivacyParameterError, match="must be above 0, and large enough"):
        scale_of(80_000, epsilon)


def test_noise_is_whole_numbers_of_the_same_shape():
    found = add_noise(Measurement("lengths", np.array([-5, 0, 2**50], np.int64), 2), Fraction(10))
    assert (found.name, found.values.dtype, found.values.shape) == ("lengths", np.int64, (3,))
    assert np.abs(found.values - [-5, 0, 2**50]).max() < 20  # a chance of e^-100 that it fails


def test_without_opendp_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'synthmap\[metrics\]'"):
        need_opendp()
