"""The command `equipoise list`: the experiments of a store."""

from equipoise.cli.options import AsJson
from equipoise.cli.stores import DEFAULT_STORE, StoreUrl, existing_store


def list_(store: StoreUrl = DEFAULT_STORE, as_json: AsJson = False) -> None:
    """List the experiments of a store, oldest first."""
    import dataclasses

    from equipoise import printing
    from equipoise.experiment import Experiment

    found = Experiment.list(existing_store(store))
    if as_json:
        rows = [dataclasses.asdict(one) | {"created_at": one.created_at.isoformat()} for one in found]
        printing.print_json({"experiments": rows})
        return
    printing.print_table(
        [
            ("experiment", [one.name for one in found]),
            ("state", [one.state for one in found]),
            ("arms", [f"{one.n_arms:,}" for one in found]),
            ("assigned", [f"{one.n_assigned:,}" for one in found]),
            ("rewarded", [f"{one.n_rewarded:,}" for one in found]),
            ("policy", [_policy(one.policy) for one in found]),
        ],
        always=5,
        words=("state", "policy"),
    )


def _policy(policy: dict[str, object]) -> str:
    weight = policy.get("reward_weight")
    return f"{policy['name']} {weight:g}" if isinstance(weight, float) else str(policy["name"])
