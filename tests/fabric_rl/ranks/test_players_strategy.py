"""What trainers and players add up, they add up among themselves: three real ranks, of which the last one plays."""

import json
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import torch
from lightning import Fabric

from fabric_rl.ranks.collectives import check_same_on_all_ranks
from fabric_rl.ranks.players_strategy import PeerFabric, fabric_kwargs

HARDWARE = {"accelerator": "cpu", "devices": 3, "num_nodes": 1, "strategy": "auto", "precision": "32-true"}


def main(folder):
    """Each rank brings 3, 5 or 7."""
    fabric = Fabric(**fabric_kwargs(1, HARDWARE, timedelta(minutes=1)))
    fabric.launch()
    strategy, own = fabric.strategy, (3.0, 5.0, 7.0)[fabric.global_rank]
    peers = PeerFabric(fabric, strategy.peer_group)
    found = {"plays": strategy.plays, "size": peers.world_size, "place": peers.global_rank}
    for name, each in (("peers", peers), ("all", fabric)):
        for reduce_op in ("mean", "sum", "min", "max"):
            found[f"{name} {reduce_op}"] = each.all_reduce(torch.tensor(own), reduce_op=reduce_op).item()
    with suppress(ValueError):
        check_same_on_all_ranks(fabric, {"seed": 1})
        found["seed"] = "agreed"
    try:
        check_same_on_all_ranks(fabric, {"seed": 1, "steps": 4 if fabric.global_rank == 2 else 8})
    except ValueError as error:
        found["steps"] = str(error)
    Path(folder, f"{fabric.global_rank}").write_text(json.dumps(found))


def test_a_group_adds_up_over_its_own_ranks(forks, tmp_path):
    statuses, _, err = forks.wait(forks.ranks(3, tmp_path, program=f"{__name__}:main"))
    assert statuses == [0] * 3, err
    said = {"seed": "agreed", "steps": "the ranks must agree on the steps, but have 8, 8, 4"}
    everyone = said | {"all mean": 5, "all sum": 15, "all min": 3, "all max": 7}
    trainers = {"peers mean": 4, "peers sum": 8, "peers min": 3, "peers max": 5}
    player = {"peers mean": 7, "peers sum": 7, "peers min": 7, "peers max": 7}
    expected = [
        {"plays": False, "size": 2, "place": 0, **trainers, **everyone},
        {"plays": False, "size": 2, "place": 1, **trainers, **everyone},
        {"plays": True, "size": 1, "place": 0, **player, **everyone},
    ]
    assert [json.loads((tmp_path / f"{rank}").read_text()) for rank in range(3)] == expected
