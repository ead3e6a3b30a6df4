"""One file a system of the literature, and the table of their names."""

from disentwine.contracts.model import Model
from disentwine.models.beta_tcvae import BetaTCVAE
from disentwine.models.beta_vae import BetaVAE
from disentwine.models.causal_gan import CausalGAN
from disentwine.models.causal_vae import CausalVAE
from disentwine.models.causal_vae_layered import LayeredCausalVAE
from disentwine.models.causal_vae_unsup import UnsupervisedCausalVAE
from disentwine.models.causal_wae import CausalWAE
from disentwine.models.causal_wae_layered import LayeredCausalWAE
from disentwine.models.condition_vae import ConditionVAE
from disentwine.models.ct_vae import CTVAE
from disentwine.models.dc_ign import DCIGN
from disentwine.models.dip_vae_i import DIPVAEI
from disentwine.models.dip_vae_ii import DIPVAEII
from disentwine.models.factor_vae import FactorVAE
from disentwine.models.hierarchical_vae import HierarchicalVAE
from disentwine.models.infogan import InfoGAN
from disentwine.models.ladder_vae import LadderVAE
from disentwine.models.mcq_vae import MCQVAE, VQVAE
from disentwine.models.vae import VAE
from disentwine.models.wae_gan import WAEGAN
from disentwine.models.wae_mmd import WAEMMD

MODELS: dict[str, type[Model]] = {
    "vae": VAE,
    "beta-vae": BetaVAE,
    "dip-vae-i": DIPVAEI,
    "dip-vae-ii": DIPVAEII,
    "factor-vae": FactorVAE,
    "beta-tcvae": BetaTCVAE,
    "wae-mmd": WAEMMD,
    "wae-gan": WAEGAN,
    "infogan": InfoGAN,
    "dc-ign": DCIGN,
    "hierarchical-vae": HierarchicalVAE,
    "ladder-vae": LadderVAE,
    "causal-vae": CausalVAE,
    "causal-vae/layered": LayeredCausalVAE,
    "causal-vae-unsup": UnsupervisedCausalVAE,
    "condition-vae": ConditionVAE,
    "causal-wae": CausalWAE,
    "causal-wae/layered": LayeredCausalWAE,
    "vq-vae": VQVAE,
    "mcq-vae": MCQVAE,
    "ct-vae": CTVAE,
    "causal-gan": CausalGAN,
}

__all__ = [
    "CTVAE",
    "DCIGN",
    "DIPVAEI",
    "DIPVAEII",
    "MCQVAE",
    "MODELS",
    "VAE",
    "VQVAE",
    "WAEGAN",
    "WAEMMD",
    "BetaTCVAE",
    "BetaVAE",
    "CausalGAN",
    "CausalVAE",
    "CausalWAE",
    "ConditionVAE",
    "FactorVAE",
    "HierarchicalVAE",
    "InfoGAN",
    "LadderVAE",
    "LayeredCausalVAE",
    "LayeredCausalWAE",
    "UnsupervisedCausalVAE",
]
