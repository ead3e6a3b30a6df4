"""Studies that reproduce the tables of papers."""

from disentwine.studies.causal.causal_vae import CAUSALVAE
from disentwine.studies.causal.causal_wae import CAUSALWAE
from disentwine.studies.causal.label_fraction import LABELS
from disentwine.studies.ct_vae.study import CTVAE
from disentwine.studies.disentanglement.beta_vae import BETAVAE
from disentwine.studies.disentanglement.dip_vae import DIPVAE
from disentwine.studies.ladder.study import LADDER
from disentwine.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study for study in (CAUSALVAE, CAUSALWAE, LABELS, BETAVAE, DIPVAE, LADDER, CTVAE)
}

__all__ = ["STUDIES", "Study"]
