"""The contracts every policy and every store must keep, as tests that authors of their own can run too."""

from equipoise.testing.policy_contract import PolicyContract
from equipoise.testing.store_contract import StoreContract

__all__ = ["PolicyContract", "StoreContract"]
