"""Answers to the questions of NIST SP 800-226, from the top of its pyramid to the bottom.

Near, Darais, Lefkovitz, Howarth, "Guidelines for Evaluating Differential Privacy Guarantees", NIST Special Publication
800-226 (2025), doi:10.6028/NIST.SP.800-226. The topics are the pyramid's; the questions are put in our words.
"""

from synthmap.privacy.shown import shown_loss
from synthmap.release import statement_lengths as lengths
from synthmap.release.manifest import Manifest
from synthmap.release.statement_facts import Fact, Facts
from synthmap.release.statement_mechanisms import words_of
from synthmap.release.statement_words import ADVICE, LEDGER, TRUST, odds, odds_note, prior, promise


class Question(Fact):
    """A question and its answer for this release."""

    topic: str
    question: str
    answer: str


def make_questions(manifest: Manifest, facts: Facts) -> list[Question]:
    """Return the questions and answers of a release."""
    words = words_of(manifest.plan)
    told = [
        (
            "ε and other parameters",
            "How strong is the guarantee, and what do the parameters mean in practice?",
            " ".join([*promise(facts), *(odds(one, facts) for one in facts.odds), odds_note(facts)]),
        ),
        (
            "Unit of privacy",
            "Whose data, and how much of it, is protected?",
            f"What is protected: {facts.unit} Neighbouring tables: {facts.adjacency}. "
            + (
                "A worker with more jobs in the table than that is protected less, job by job."
                if facts.max_jobs_per_worker > 1
                else "A worker with several jobs in the table is protected for each alone, and less for all together."
            ),
        ),
        (
            "Comparing guarantees",
            "With which other guarantees may it be compared?",
            f"With guarantees of the same unit only. ε here is a natural logarithm ({shown_loss(facts.dp.epsilon)}); "
            "OnTheMap's publications print exp(ε). Destination and headcount are fixed between neighbours (bounded "
            "DP), so a guarantee for adding or removing a person is another thing.",
        ),
        (
            "Mixing with other releases",
            "Has anything about the same people been published without such protection?",
            "Assumed: " + "; ".join(facts.assumptions or ["nothing is stated"]) + f". {LEDGER}",
        ),
        (
            "Utility",
            "How accurate are the figures, and how is that known?",
            f"{words.utility} {prior(facts)} plan.parquet has the predicted error of every destination; the service "
            "tells it by size and by distance at …/metrics, from public files, at no cost.",
        ),
        (
            "Bias",
            "Does protection bend results, and for whom?",
            "Towards the public prior: small destinations, rare origins and long commutes are bent most, the more so "
            "where the prior is wrong, as for places whose workers come from unusual places. Counts are never "
            "negative and headcounts are kept, so nothing is clipped. What the confidential table leaves out, the "
            "release leaves out too.",
        ),
        (
            "Algorithms and correctness",
            "Which mechanism is used, and who has checked it?",
            f"{words.name}. {words.how} {words.exact} Proofs lie beside the code; `synthmap verify` certifies the "
            "noise of every destination again from public files, `synthmap audit` runs the same code through every "
            "random choice in small worlds, and must find out mechanisms that are broken on purpose."
            + lengths.verified(facts),
        ),
        (
            "Query model",
            "Who can ask what, and how often?",
            "Nobody asks the confidential table anything: "
            + ("" if facts.lengths is None else "sums of commute lengths are measured once, ")
            + "one table is drawn once, and every question is answered from "
            "that. Asking it again and again teaches nothing new.",
        ),
        (
            "Threat and trust model",
            "Who is trusted, and with what?",
            TRUST,
        ),
        (
            "Side channels",
            "What else could leak?",
            "Messages, logs, job states and file names are made from public data"
            + ("" if facts.lengths is None else " and from what is published")
            + ". How long drawing took and how much "
            "memory it needed are not covered: draw where nobody can watch.",
        ),
        (
            "Security and access control",
            "How is the confidential table kept?",
            "A release cannot tell; ask its curator. synthmap keeps intermediate files in a private directory and "
            "removes them, stores no key of its random stream, and lets the service import nothing that reads tables.",
        ),
        (
            "Data collection exposure",
            "What happened to the data before?",
            "Differential privacy says nothing about how the confidential table was collected, who holds copies, and "
            "whether it may be used like this; ask its curator.",
        ),
        ("Use", "How should it be read?", ADVICE),
    ]
    found = [Question(topic=topic, question=question, answer=answer) for topic, question, answer in told]
    if not manifest.private:
        caution = f"NOT PRIVATE: {manifest.warning}. The answers below are those of a private release made likewise."
        found.insert(0, Question(topic="Warning", question="Is this release private at all?", answer=f"No. {caution}"))
    return found
