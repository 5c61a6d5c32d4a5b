"""What differs between mechanisms in a statement: one row each."""

from dataclasses import dataclass

from synthmap.release.manifest import PlanSummary


@dataclass(frozen=True)
class MechanismWords:
    """What a statement says of a mechanism.

    Attributes
    ----------
    name : str
        As the registry of deployments names mechanisms.
    how : str
        What is done to the counts.
    exact : str
        How it is kept from the faults of floating-point noise.
    utility : str
        What the noise does to figures.
    post_processing : str
        What is done to the protected table before it is published.
    proofs : str
        Pages of proofs in synthmap/privacy/proofs.
    """

    name: str
    how: str
    exact: str
    utility: str
    post_processing: str
    proofs: str


WORDS = {
    "dirichlet": MechanismWords(
        name="Dirichlet-multinomial resampling with probabilistic dropping (OnTheMap, ICDE 2008)",
        how="For every destination the possible origins are joined into cells, a pseudo-count α is added to each cell, "
        "and as many synthetic workers as there are real ones are drawn from the Dirichlet-multinomial posterior; "
        "empty cells may be dropped at random beforehand. α is the least that an exact certificate accepts.",
        exact="The draw is a Pólya urn on integers: no floating-point number lies between the random bits and the "
        "table, and the certificate is computed at the very rational number that the urn uses.",
        utility="Each pseudo-count adds workers that come from the public prior instead of the data; the draw itself "
        "adds sampling error, as if every destination were a sample of its own workers.",
        post_processing="Synthetic workers are spread inside their cell over zones by the public prior.",
        proofs="urn, tails, certificate, calibration, dropping, composition, beliefs",
    ),
    "histogram": MechanismWords(
        name="Two-sided geometric noise on the counts of a histogram, read through the public prior",
        how="For every destination the possible origins are joined into cells, integer noise is added to the count of "
        "each cell, empty ones too, at some destinations to counts of groups of cells as well, and a table is read "
        "from the noisy counts with the help of the public prior.",
        exact="The noise is drawn as integers, exactly, with rational probabilities (the law of Canonne, Kamath, "
        "Steinke 2020): no floating-point number lies between the random bits and the noise.",
        utility="Each cell's count is off by noise of the same size whatever the count; small cells are pulled "
        "towards the public prior.",
        post_processing="The noisy counts are not published: a table with the published headcounts is read from them "
        "by Bayes' rule with the public prior, and spread inside cells over zones by that prior.",
        proofs="histogram, composition, beliefs",
    ),
    "histogram, gaussian": MechanismWords(
        name="Discrete Gaussian noise on the counts of a histogram, read through the public prior",
        how="For every destination the possible origins are joined into cells, integer noise is added to the count of "
        "each cell, empty ones too, of the same variance everywhere, and a table is read from the noisy counts with "
        "the help of the public prior.",
        exact="The noise is drawn as integers from a public table of whole weights, which is the law that was "
        "certified: no floating-point number lies between the random bits and the noise.",
        utility="Each cell's count is off by noise of the same size whatever the count; small cells are pulled "
        "towards the public prior.",
        post_processing="The noisy counts are not published: a table with the published headcounts is read from them "
        "by Bayes' rule with the public prior, and spread inside cells over zones by that prior.",
        proofs="gaussian, histogram, composition, beliefs",
    ),
}


def words_of(plan: PlanSummary) -> MechanismWords:
    """Return the words for the mechanism of a plan."""
    return WORDS[f"{plan.mechanism}, {plan.noise_law}" if plan.noise_law else plan.mechanism]
