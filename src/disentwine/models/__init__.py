"""One file a system of the literature, and the table of their names."""

from disentwine.contracts.model import Model
from disentwine.models.beta_vae import BetaVAE
from disentwine.models.causal_vae import CausalVAE
from disentwine.models.causal_vae_layered import LayeredCausalVAE
from disentwine.models.factor_vae import FactorVAE
from disentwine.models.vae import VAE

MODELS: dict[str, type[Model]] = {
    "vae": VAE,
    "beta-vae": BetaVAE,
    "factor-vae": FactorVAE,
    "causal-vae": CausalVAE,
    "causal-vae/layered": LayeredCausalVAE,
}

__all__ = ["MODELS", "VAE", "BetaVAE", "CausalVAE", "FactorVAE", "LayeredCausalVAE"]
