"""All models, and `MODELS`, their names in recipes."""

from disentwine.core.model import Model
from disentwine.models.causal.causal_gan import CausalGAN as CausalGAN
from disentwine.models.causal.causal_vae import CausalVAE as CausalVAE
from disentwine.models.causal.causal_vae_unsup import UnsupervisedCausalVAE as UnsupervisedCausalVAE
from disentwine.models.causal.causal_wae import CausalWAE as CausalWAE
from disentwine.models.causal.condition_vae import ConditionVAE as ConditionVAE
from disentwine.models.causal.layered_vae import LayeredCausalVAE as LayeredCausalVAE
from disentwine.models.causal.layered_wae import LayeredCausalWAE as LayeredCausalWAE
from disentwine.models.hierarchical.ladder import HierarchicalVAE as HierarchicalVAE
from disentwine.models.hierarchical.ladder import LadderVAE as LadderVAE
from disentwine.models.infogan import InfoGAN as InfoGAN
from disentwine.models.quantized.ct_vae import CTVAE as CTVAE
from disentwine.models.quantized.mcq_vae import MCQVAE as MCQVAE
from disentwine.models.quantized.mcq_vae import VQVAE as VQVAE
from disentwine.models.quantized.mcq_vae import QuantizerOptions as QuantizerOptions
from disentwine.models.quantized.transition_losses import Contrast as Contrast
from disentwine.models.quantized.transition_losses import Rollout as Rollout
from disentwine.models.quantized.transition_losses import TransitionWeights as TransitionWeights
from disentwine.models.vae.beta_tcvae import BetaTCVAE as BetaTCVAE
from disentwine.models.vae.beta_vae import BetaVAE as BetaVAE
from disentwine.models.vae.dc_ign import DCIGN as DCIGN
from disentwine.models.vae.dip_vae import DIPVAEI as DIPVAEI
from disentwine.models.vae.dip_vae import DIPVAEII as DIPVAEII
from disentwine.models.vae.factor_vae import FactorVAE as FactorVAE
from disentwine.models.vae.vae import VAE as VAE
from disentwine.models.wae import WAEGAN as WAEGAN
from disentwine.models.wae import WAEMMD as WAEMMD
from disentwine.nn.transition import TransitionOptions as TransitionOptions

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
