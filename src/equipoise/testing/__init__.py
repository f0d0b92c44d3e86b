"""Contract tests for policies and stores: subclass them to test your own implementation."""

from equipoise.testing.policy_contract import PolicyContract
from equipoise.testing.store_contract import StoreContract

__all__ = ["PolicyContract", "StoreContract"]
