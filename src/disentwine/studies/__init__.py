"""One file a paper: the table it prints, ours beside theirs."""

from disentwine.studies.causalvae import CAUSALVAE
from disentwine.studies.labels import LABELS
from disentwine.studies.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (CAUSALVAE, LABELS)}

__all__ = ["STUDIES", "Study"]
