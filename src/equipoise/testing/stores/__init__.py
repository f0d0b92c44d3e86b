"""The contract every store must keep: what an experiment promises, whatever database it lives in.

Subclass `StoreContract` in a pytest module and say how to get an empty database; pytest finds the rest::

    class TestMine(StoreContract):
        def new_url(self):
            return f"sqlite:///{tempfile.mkdtemp()}/store.db"
"""

from equipoise.testing.stores.case import StoppedClock
from equipoise.testing.stores.keys import Keys
from equipoise.testing.stores.life import Life
from equipoise.testing.stores.missing import MissingRewards
from equipoise.testing.stores.outside import Outside
from equipoise.testing.stores.replaying import Replaying
from equipoise.testing.stores.shares import Shares
from equipoise.testing.stores.units import Units
from equipoise.testing.stores.writers import ManyWriters

__all__ = ["StoppedClock", "StoreContract"]


class StoreContract(Units, MissingRewards, Shares, Life, Replaying, ManyWriters, Outside, Keys):
    """What must hold for every store."""
