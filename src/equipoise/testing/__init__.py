"""The contracts every policy and every store must keep, as tests that authors of their own can run too."""

from equipoise.testing.policies import PolicyContract
from equipoise.testing.stores import StoreContract

__all__ = ["PolicyContract", "StoreContract"]
