"""Arms for simulations: distributions that rewards are drawn from, with their true means and standard deviations."""

from equipoise.arms.arms import Arms, Drawing
from equipoise.arms.distributions import Distributions
from equipoise.arms.empirical import Empirical
from equipoise.arms.mixed import Mixed
from equipoise.arms.parametric import Bernoulli, Beta, Gaussian, UniformBetween

__all__ = ["Arms", "Bernoulli", "Beta", "Distributions", "Drawing", "Empirical", "Gaussian", "Mixed", "UniformBetween"]
