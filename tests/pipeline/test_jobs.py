"""What a job may choose, and what the public reads when it fails."""

import inspect

import pytest

from pipelines.jobs.__main__ import _described
from pipelines.jobs.messages import may_pass, public_message
from pipelines.jobs.release import with_choices
from pipelines.stage import StageError
from synthmap import errors
from synthmap.catalog.claims import ClaimLostError
from synthmap.errors import ConfigurationError

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)] + [StageError, ClaimLostError]


def test_choices_change_the_spec_and_nothing_else(make_spec):
    spec = make_spec()
    chosen = {"epsilon": 2.0, "delta": 1e-7, "rule": "adp", "cells": 9, "keep": "prior", "coarsening": "distance"}
    found = with_choices(spec, {"dataset": "ri", "segments": ["SA01"], "title": "T", **chosen})
    assert (found.privacy.epsilon, found.privacy.delta, found.privacy.rule) == (2.0, 1e-7, "adp")
    assert (found.plan.cells, found.plan.keep, found.plan.coarsening) == (9, "prior", "distance")
    assert (found.segment_columns, found.title, found.name) == (("SA01",), "T", "ri")
    same = {"privacy": spec.privacy, "plan": spec.plan, "segments": spec.segments, "title": spec.title, "name": "demo"}
    assert found.model_copy(update=same) == spec


def test_what_is_not_chosen_is_the_operators(make_spec):
    spec = make_spec(privacy={"epsilon": 1.5, "max_jobs_per_worker": 3}, plan={"cells": 7})
    assert with_choices(spec, {"dataset": "ri", "name": "demo"}) == spec


@pytest.mark.parametrize(
    "inputs",
    [{"store": "x"}, {"tables": []}, {"run": {}}, {"zones": {}}, {"max_jobs_per_worker": 100}, {"prior": {}},
     {"epsilon": 0}, {"epsilon": "4"}, {"delta": 1}, {"rule": "none"}, {"cells": 0}, {"segments": ["a", "a"]},
     {"segments": ["count"]}, {"name": "../x"}],
)  # fmt: skip
def test_the_worker_checks_the_choices_again(make_spec, inputs):
    with pytest.raises(ConfigurationError):
        with_choices(make_spec(), {"dataset": "ri", **inputs})


@pytest.mark.parametrize("kind", [*KINDS, OSError, MemoryError, ValueError, KeyError])
def test_the_public_message_depends_on_the_class_only(kind):
    messages = {public_message(kind(text)) for text in ("", "od.csv: origin 4711", "x" * 1000)}
    assert len(messages) == 1
    assert "4711" not in messages.pop()


def test_an_unknown_zone_is_not_told_from_another_fault_of_the_table():
    assert public_message(errors.UnknownZoneError()) == public_message(errors.ConfidentialDataError())


def test_only_what_may_pass_is_tried_again():
    passing = [OSError(28, "full"), MemoryError(), StageError("lost"), errors.CatalogError("away"), ClaimLostError("x")]
    passing += [errors.UnwritableError("full"), errors.StorageError("away")]
    lasting = [errors.ConfidentialDataError(), errors.ConfigurationError(), errors.BudgetExceededError(), ValueError()]
    assert [may_pass(one) for one in passing + lasting] == [True] * 7 + [False] * 4


def test_a_foreign_exception_does_not_bring_its_text_into_the_log():
    told = _described(ValueError("worker 4711 lives in 0001"))
    assert "ValueError" in told["log"]
    assert "4711" not in str(told)
    assert "0001" not in str(told)


def test_an_error_of_several_lines_is_one_line_of_the_log():
    assert _described(ConfigurationError("a\nb\n  c"))["log"] == "ConfigurationError: a b c"
