"""Arms to simulate with: what their rewards are drawn from, and their true means and standard deviations."""

from equipoise.arms.arms import Arms
from equipoise.arms.bernoulli import Bernoulli
from equipoise.arms.distributions import Distributions
from equipoise.arms.drawing import Drawing
from equipoise.arms.empirical import Empirical
from equipoise.arms.gaussian import Gaussian
from equipoise.arms.interval import Beta, UniformBetween
from equipoise.arms.mixed import Mixed

__all__ = [
    "Arms",
    "Bernoulli",
    "Beta",
    "Distributions",
    "Drawing",
    "Empirical",
    "Gaussian",
    "Mixed",
    "UniformBetween",
]
