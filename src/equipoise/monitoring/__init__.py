"""Watch an experiment that runs: pure functions from sums by day and arm to what is unusual about them.

Every function works on arrays whose last axes are named in its documentation; leading axes are of many experiments at
once, so that the rates of false alarms can be measured on ten thousand of them. Nothing here reads a store or a clock.
"""
