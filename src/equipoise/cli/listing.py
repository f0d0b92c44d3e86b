"""The command `equipoise list`: the experiments of a store or a service."""

from equipoise.cli.options import AsJson
from equipoise.cli.stores import DEFAULT_STORE, Key, StoreUrl, experiments_at


def list_(store: StoreUrl = DEFAULT_STORE, key: Key = None, as_json: AsJson = False) -> None:
    """List the experiments of a store, oldest first."""
    import dataclasses

    from equipoise import printing

    found = experiments_at(store, key).list()
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
    name = str(policy.get("name", "damaged"))
    return f"{name} {weight:g}" if isinstance(weight, float) else name
