"""The commands `equipoise weight` and `equipoise what-if`: turn the dial, or see first what that would do."""

from typing import Annotated

import typer

from equipoise.cli.options import AsJson
from equipoise.cli.stores import (
    DEFAULT_STORE,
    ExperimentName,
    Key,
    StoreUrl,
    Who,
    open_experiment,
    print_answer,
)

Weight = Annotated[
    float, typer.Argument(metavar="W", help="The dial: 0 is accuracy only, 1 reward only.", show_default=False)
]


def weight(
    name: ExperimentName,
    reward_weight: Weight,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    who: Who = None,
    as_json: AsJson = False,
) -> None:
    """Change the weight between reward and accuracy, from the next decision on; the log says when."""
    experiment = open_experiment(store, name, key, who)
    before = experiment.configuration.reward_weight
    experiment.change_weight(reward_weight)
    data = {"name": name, "reward_weight": reward_weight, "was": before}
    print_answer(data, f"{name}: the weight is {reward_weight:g}, it was {before:g}", as_json)


def what_if(
    name: ExperimentName,
    reward_weight: Weight,
    store: StoreUrl = DEFAULT_STORE,
    key: Key = None,
    as_json: AsJson = False,
) -> None:
    """Show what another weight would ask for now, and its price in reward and error; nothing is changed."""
    import dataclasses

    from equipoise import printing

    found = open_experiment(store, name, key).what_if(reward_weight)
    if as_json:
        more = {"reward_change": found.reward_change, "error_ratio": found.error_ratio}
        printing.print_json({"name": name} | dataclasses.asdict(found) | more)
        return
    now, then = f"at {found.present_weight:g}", f"at {found.reward_weight:g}"
    pairs = zip((found.present_allocation, found.allocation), (now, then), strict=True)
    printing.print_table(
        [("arm", list(found.allocation))]
        + [(head, [f"{share:.4f}" for share in allocation.values()]) for allocation, head in pairs]
    )
    rewards = printing.aligned([found.present_reward, found.reward])
    print(f"\nreward per unit  {rewards[0]} -> {rewards[1]}")
    print(f"error            {found.error_ratio:.3g} times the present one", flush=True)
