"""The questions of NIST SP 800-226 are answered, from the top of its pyramid to the bottom."""

from synthmap.release.statement import read_statement

TOPICS = [
    "ε and other parameters", "Unit of privacy", "Comparing guarantees", "Mixing with other releases", "Utility",
    "Bias", "Algorithms and correctness", "Query model", "Threat and trust model", "Side channels",
    "Security and access control", "Data collection exposure", "Use",
]  # fmt: skip


def test_every_level_of_the_pyramid_is_answered(small_release):
    found = read_statement(small_release()).questions
    assert [one.topic for one in found] == TOPICS
    assert all(one.question.endswith("?") and one.answer.strip().endswith(".") for one in found)


def test_answers_carry_the_figures_of_the_release(small_release):
    def change(manifest):
        manifest["privacy"].update(max_jobs_per_worker=2, assumptions=["the sky is blue"])

    answers = {one.topic: one.answer for one in read_statement(small_release(change=change)).questions}
    assert "ε = 4, δ = 1e-06" in answers["ε and other parameters"]
    assert "the sky is blue" in answers["Mixing with other releases"]
    assert "/ledger" in answers["Mixing with other releases"]
    assert "job by job" in answers["Unit of privacy"]
    assert "the largest share at one is 33.3 %" in answers["Utility"]


def test_a_release_that_is_not_private_answers_that_first(small_release):
    found = read_statement(small_release(change=lambda m: m.update(private=False, warning="seeded"))).questions
    assert found[0].answer.startswith("No. NOT PRIVATE: seeded")
    assert [one.topic for one in found[1:]] == TOPICS
