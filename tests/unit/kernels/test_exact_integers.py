"""Compiled code must compare units of an urn as integers: above 2^53 floats would merge neighbours."""

import numpy as np
import pytest

from synthmap.kernels import urn
from synthmap.kernels.bounded import KEEP_UNITS, binomial, uniform_below


def test_results_are_signed_integers_in_compiled_code():
    uniform_below(np.ones(4, np.uint64), np.zeros(1, np.int64), 7)
    binomial(np.ones(4, np.uint64), np.zeros(1, np.int64), 3, 5, 16)
    for kernel in (uniform_below, binomial):
        assert {str(overload.signature.return_type) for overload in kernel.overloads.values()} == {"int64"}


@pytest.mark.parametrize("offset", [-3, -2, -1, 0, 1, 2, 2231, 2232, 2233])
@pytest.mark.parametrize("keep", [KEEP_UNITS, KEEP_UNITS - 1])
def test_compiled_and_exact_agree_at_the_boundaries_of_a_large_urn(keep, offset):
    workers, p, q, k = 2**20, 2232, 2**40, 10
    homes = np.sort(np.arange(workers) % k)
    unit = workers * q + offset
    words = np.array([-(-unit * 2**64 // (workers * q + k * p)) + 1], np.uint64)  # the second that stands for it
    arguments = (homes, 1, k, p, q, np.empty(0, np.int64), np.array([0, k]), np.array([keep]))
    found = urn.draw(*arguments, words, np.zeros(1, np.int64))[0]
    # all cells are occupied, so nothing is dropped
    assert found == (homes[unit // q] if offset < 0 else min(offset // p, k - 1))
