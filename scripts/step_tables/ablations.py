"""What becomes of the errors of predicted steps as if there were one effect less."""

from step_tables.rows import figures, predict_all, ratios_of


def without_power_limit(experiment):
    machine = experiment["machine"]
    machine = {"extends": machine} if isinstance(machine, str) else dict(machine)
    machine["device"] = {**machine.get("device", {}), "power_limit": "100 kW"}
    return {**experiment, "machine": machine}


def with_strategy(experiment, change):
    strategy = experiment.get("strategy", {})
    return {**experiment, "strategy": change(dict(strategy))} if isinstance(strategy, dict) else experiment


def without_product_overlap(strategy):
    if "async_tp" in strategy: strategy["async_tp"] = False
    if "overlap" in strategy: strategy["overlap"] = {**strategy["overlap"], "tp": False}
    return strategy


def without_gradient_overlap(strategy):
    if "overlap" in strategy:
        strategy["overlap"] = {**strategy["overlap"], "gradients": False, "parameters": False}
    return strategy


def with_kernels(strategy, change):
    kernels = strategy.get("kernels")
    if isinstance(kernels, str): kernels = {"base": kernels}
    return {**strategy, "kernels": change(dict(kernels))} if kernels else strategy


def without_generation(kernels):
    kernels.pop("attention", None)
    return kernels


# Effects, and an experiment as if there were none.
ABLATIONS = {
    "the clock that power leaves": without_power_limit,
    "the host's time to issue kernels": lambda one: with_strategy(one, lambda strategy: with_kernels(
        strategy, lambda kernels: {**kernels, "graphs": "full-iteration"})),
    "tensor parallelism beside products": lambda one: with_strategy(one, without_product_overlap),
    "gradients and parameters beside kernels": lambda one: with_strategy(one,
                                                                         without_gradient_overlap),
    "which attention kernel is meant": lambda one: with_strategy(one, lambda strategy: with_kernels(
        strategy, without_generation)),
}


def ablations(shardsim, rows, outcomes, jobs):
    rows = [row for row in rows if row["tier"] in ("A", "B")]
    lines = ["| without, tiers A and B | rows it changes | median | p90 | bias | of these before: median | "
             "p90 | bias |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for name, change in ABLATIONS.items():
        changed = [{**row, "experiment": change(row["experiment"])} for row in rows]
        without = predict_all(shardsim, changed, jobs)
        moved = [row for row in rows if "predicted" in without[row["id"]]
                 and "predicted" in outcomes[row["id"]]
                 and without[row["id"]]["predicted"] != outcomes[row["id"]]["predicted"]]
        if not moved: continue
        cells = [f"{value:.1f}" for of in (without, outcomes) for value in figures(ratios_of(moved, of))]
        lines.append(f"| {name} | {len(moved)} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
