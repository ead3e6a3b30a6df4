"""One file a paper: the table it prints, ours beside theirs."""

from disentwine.studies.betavae import BETAVAE
from disentwine.studies.causalvae import CAUSALVAE
from disentwine.studies.causalwae import CAUSALWAE
from disentwine.studies.ctvae import CTVAE
from disentwine.studies.dipvae import DIPVAE
from disentwine.studies.labels import LABELS
from disentwine.studies.ladder import LADDER
from disentwine.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study for study in (CAUSALVAE, CAUSALWAE, LABELS, BETAVAE, DIPVAE, LADDER, CTVAE)
}

__all__ = ["STUDIES", "Study"]
