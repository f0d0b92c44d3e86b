"""Analyse experiments: numbers one may decide on while people are still coming, whatever the policy.

Everything is read from one root, the evidence against values of a mean (`Evidence`), a function of sums that may be
corrected, merged and arrive in any order: intervals, p-values, differences, which arms may still be best.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
