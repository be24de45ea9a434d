"""The shots of Rocket League's training packs: which are chosen, and how many of them are solved."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from envs.matches.matches import Player, PoolFactory
from envs.resets.training_packs import Pack
from envs.state.layout import Bool
from fabric_rl.evaluation.players import Entrant
from fabric_rl.selfplay.ratings.intervals import share_interval

DIFFICULTIES = ("Rookie", "Pro", "All-Star", "Unknown")


class Marked(NamedTuple):
    """A pack and which of its shots were passed, `[S]` bool."""

    pack: Pack
    passed: Bool

    @property
    def group(self) -> tuple[str, str]:
        """Its type and its difficulty."""
        return self.pack.metadata.get("type", "Unknown"), self.pack.metadata.get("difficulty", "Unknown")


def chosen(packs: Sequence[Pack], words: Sequence[str]) -> list[Pack]:
    """Return the packs with one of the words for code, type, difficulty or tag; all without words.

    Raises:
        ValueError: A word that no pack has.
    """
    of = [set[str]().union(*map(pack.names, ("code", "type", "difficulty", "tags"))) for pack in packs]
    for word in words:
        if not any(word in names for names in of):
            known = ", ".join(
                sorted({name for pack in packs for key in ("type", "difficulty") for name in pack.names(key)})
            )
            raise ValueError(f"--packs {word}: no training pack has this code, type, difficulty or tag (as {known})")
    return [pack for pack, names in zip(packs, of, strict=True) if not words or not names.isdisjoint(words)]


def seated(who: Entrant, recipe: PoolFactory, tick_skip: int) -> tuple[Player, tuple[int, int]]:
    """Return the player and the teams (blue, orange) that it can see: itself alone, or those of its training."""
    blue, orange = (max(sizes) for sizes in zip(*recipe.team_sizes, strict=True))
    try:
        return who.build((1, 0), tick_skip), (1, 0)
    except ValueError:  # its observation has columns for others
        return who.build((blue, orange), tick_skip), (blue, orange)


def summary(marked: Sequence[Marked]) -> dict[str, Any]:
    """Return `groups`, by type and difficulty and of each type in all, and `packs`, with what was passed of each."""
    ranks = {name: rank for rank, name in enumerate(DIFFICULTIES)}
    ordered = sorted(marked, key=lambda one: (one.group[0], ranks.get(one.group[1], len(ranks)), one.group[1]))
    groups = []
    for kind, of_kind in groupby(ordered, key=lambda one: one.group[0]):
        members = list(of_kind)
        for difficulty, some in groupby(members, key=lambda one: one.group[1]):
            groups.append({"type": kind, "difficulty": difficulty} | _figures(list(some)))
        groups.append({"type": kind, "difficulty": "all"} | _figures(members))
    packs = [
        {key: one.pack.metadata.get(key) for key in ("code", "title", "type", "difficulty", "tags")}
        | _figures([one])
        | {"marks": "".join(map(str, one.passed.astype(int)))}
        for one in marked
    ]
    return {"groups": groups, "packs": packs}


def _figures(marked: Sequence[Marked]) -> dict[str, Any]:
    passed = np.concatenate([one.passed for one in marked])
    count, interval = int(passed.sum()), share_interval(int(passed.sum()), len(passed))
    figures = {"shots": len(passed), "passed": count, "share": count / len(passed), "interval_95": list(interval)}
    return {"packs": len(marked)} | figures
