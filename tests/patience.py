"""What a machine that is busy with other tests may add to the times that are promised."""

BUSY = 3.0
"""Seconds. What the limits guard against, such as an interrupt that nobody looks for, takes much longer."""

HANGS = 120.0
"""Seconds after which something that should be over soon hangs, however busy the machine is."""
