"""One file a system of the literature, and the table of their names."""

from disentwine.core.model import Model
from disentwine.models.causal.causal_gan import CausalGAN
from disentwine.models.causal.causal_vae import CausalVAE
from disentwine.models.causal.causal_vae_unsup import UnsupervisedCausalVAE
from disentwine.models.causal.causal_wae import CausalWAE
from disentwine.models.causal.condition_vae import ConditionVAE
from disentwine.models.causal.layered_vae import LayeredCausalVAE
from disentwine.models.causal.layered_wae import LayeredCausalWAE
from disentwine.models.hierarchical.ladder import HierarchicalVAE, LadderVAE
from disentwine.models.infogan import InfoGAN
from disentwine.models.quantized.ct_vae import CTVAE
from disentwine.models.quantized.mcq_vae import MCQVAE, VQVAE
from disentwine.models.vae.beta_tcvae import BetaTCVAE
from disentwine.models.vae.beta_vae import BetaVAE
from disentwine.models.vae.dc_ign import DCIGN
from disentwine.models.vae.dip_vae import DIPVAEI, DIPVAEII
from disentwine.models.vae.factor_vae import FactorVAE
from disentwine.models.vae.vae import VAE
from disentwine.models.wae import WAEGAN, WAEMMD

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
