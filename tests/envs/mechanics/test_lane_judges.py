"""What each lane takes for a success, in scenes by hand: the numbers at its limits, and what it forgets."""

import numpy as np
import pytest

from envs.mechanics import (
    AirDribbleLane,
    DribbleLane,
    FlipResetLane,
    HalfFlipLane,
    JumpShotLane,
    KickoffLane,
    WallToAerialLane,
)
from envs.mechanics.base import Seen
from tests.envs.rewards.reward_play import Scene

FAR = (2000, 2000, 17)


class Judged:
    """A lane that looks at a scene; all is given as the lane's car sees it, which is blue or orange."""

    def __init__(self, lane, orange=False):
        self.lane, self.orange, self.scene = lane, orange, Scene()
        self.notes = np.zeros((1, lane.num_notes))

    def begin(self, **changes):
        self._put(0, changes)
        self.lane.begin(self._seen(), self.notes)
        return self

    def __call__(self, ticks=0, **changes):
        """Whether it is a success, `ticks` later."""
        self._put(ticks, changes)
        return bool(self.lane.judge(self._seen(), self.notes)[0])

    def _seen(self):
        return Seen(self.scene.state, np.array([0]), np.array([int(self.orange)]))

    def _put(self, ticks, changes):
        turned = np.array([-1, -1, 1]) if self.orange else np.ones(3)
        told = {"touched": changes.pop("touched", False), "by_other": changes.pop("by_other", False)}
        both = [told["by_other"], told["touched"]] if self.orange else [told["touched"], told["by_other"]]
        for name, value in changes.items():
            if name in ("ball", "ball_vel"):
                changes[name] = np.multiply(value, turned)
            elif name in ("pos", "vel", "up", "forward"):
                own, other = np.multiply(value, turned), FAR if name == "pos" else (0, 0, 1)
                changes[name] = [other, own] if self.orange else [own, other]
            else:
                changes[name] = [False, value] if self.orange else [value, False]
        self.scene.put(ticks, touched=both, **changes)


@pytest.fixture(params=[False, True], ids=["blue", "orange"])
def judged(request):
    return lambda lane: Judged(lane, request.param)


def test_wall_to_aerial(judged):
    look = judged(WallToAerialLane(min_height=500))
    wall, air, floor = (
        {"pos": pos, "on_ground": on} for pos, on in (((4079, 0, 900), 1), ((3000, 0, 900), 0), (FAR, 1))
    )
    high, low = {"ball": (2900, 0, 501), "touched": True}, {"ball": (2900, 0, 500), "touched": True}
    assert not look(**air, **high)  # it has not been on a wall
    assert not look(**wall, **high)
    assert not look(**wall) and not look(**wall, **high) and not look(**wall)
    assert not look(**air)
    assert not look(**air, **low)
    assert look(**air, **high)
    assert look(**(air | {"on_ground": 1}), **high)  # wheels on the ball are not a landing
    assert not look(**floor) and not look(**air)
    assert not look(**air, **high)  # off the floor
    assert not look(**wall) and not look(**air) and look(**air, **high)


def test_air_dribble(judged):
    def carried(look):
        """Touches after 0.5 s, 0.6 s (too soon to count), 1.5 s."""
        for ticks, touched in ((60, True), (12, True), (108, True)):
            assert not look(ticks, ball=(0, 0, 600), pos=(0, 0, 450), on_ground=0, touched=touched)
        return look

    look = carried(judged(AirDribbleLane()))
    assert not look(59)  # 1.99 s
    assert look(1)
    assert not look(0, ball=(0, 0, 350)) and look(0, ball=(0, 0, 351))
    assert look(18)  # 0.65 s after the last touch
    assert not look(12)
    look = judged(AirDribbleLane())
    for ticks in (200, 12):
        assert not look(ticks, ball=(0, 0, 600), pos=(0, 0, 450), on_ground=0, touched=True)  # that is one
    assert not look(30)
    assert look(0, touched=True)
    for down in ({"on_ground": 1}, {"ball": (0, 0, 94)}):
        look = carried(judged(AirDribbleLane()))
        assert not look(30, **down)
        assert not look(30, ball=(0, 0, 600), on_ground=0)


def test_flip_reset(judged):
    spent = {"has_flipped": True, "flip_time": 0.9, "on_ground": 0}
    above = {"pos": (0, 0, 1050), "ball": (0, 0, 900), "up": (0, 0, 1)}
    for changes, expected in (
        ({}, True),
        ({"up": (1, 0, 0)}, False),
        ({"up": (0, 0, -1)}, False),
        ({"up": (0.6, 0, 0.8)}, True),
        ({"up": (0.8, 0, 0.6)}, False),
        ({"pos": (0, 0, 1099)}, True),
        ({"pos": (0, 0, 1100)}, False),
        ({"pos": (0, 0, 300), "ball": (0, 0, 150)}, False),
        ({"pos": (0, 0, 301), "ball": (0, 0, 150)}, True),
    ):
        look = judged(FlipResetLane()).begin(**spent, **above)
        assert not look()
        assert look(has_flipped=False, **changes) is expected, changes
        assert not look(has_flipped=False, **above)  # it had it before


def test_jump_shot(judged):
    air = {"has_jumped": True, "on_ground": 0, "pos": (0, 3800, 250)}
    shot, away = ({"ball": (0, 4000, 300), "ball_vel": (0, speed, 0)} for speed in (2500, -2500))
    scored = {"ball": (0, 5300, 300), "ball_vel": (0, 2500, 0)}
    look = judged(JumpShotLane())
    assert not look(**air, **shot)  # nobody has touched it
    assert look(**air, **shot, touched=True)
    assert not look(**air, **away, touched=True)
    assert look(**air, **scored)  # by that touch
    assert not look(**air, **shot, by_other=True)
    assert not look(**air, **scored)
    assert not look(**(air | {"on_ground": 1}), **shot, touched=True) and not look(**scored)
    assert not look(**(air | {"has_jumped": False}), **shot, touched=True)
    assert not look(**air, **away, touched=True)
    assert not look(ball=(0, -5300, 300))  # an own goal


def test_dribble(judged):
    def ball(across, up):
        return {"ball": (across, 0, 17 + up), "pos": (0, 0, 17), "on_ground": 1}

    look = judged(DribbleLane(hold_seconds=2.0))
    assert not look(120, **ball(0, 130)) and not look(239)
    assert look(1) and look(1)
    assert not look(1, **ball(110, 130)) and not look(1, **ball(109, 130))  # it begins anew
    assert not look(239) and look(1)
    for off in (ball(0, 60), ball(0, 140), ball(0, 130) | {"on_ground": 0}):
        assert not look(0, **off)
        assert not look(0, **ball(0, 139))
        assert not look(239, **ball(0, 61)) and look(1)


def test_half_flip(judged):
    fast = {"vel": (0, -1000, 0), "forward": (0, -1, 0), "up": (0, 0, 1), "on_ground": 1}
    slanted = (0.45, -0.89, 0)
    for changes, expected in (
        ({}, True),
        ({"vel": (0, -999, 0)}, False),
        ({"vel": (0, 1500, 0)}, False),
        ({"up": (0, 0, 0.9)}, False),
        ({"on_ground": 0}, False),
        ({"forward": slanted, "vel": np.multiply(slanted, 1500)}, False),
        ({"forward": (0, 1, 0), "vel": (0, 1500, 0)}, False),
    ):
        look = judged(HalfFlipLane()).begin(forward=(0, 1, 0))
        assert look(**(fast | changes)) is expected, changes


def test_kickoff(judged):
    """The ball in the other half a second after the own touch, or a goal; looked at once."""
    theirs, ours = {"ball": (0, 1, 93)}, {"ball": (0, -1, 93)}
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs) and not look(0, touched=True) and not look(119)
    assert look(1)
    assert not look(1)  # not again
    assert look(1, ball=(0, 5300, 93))
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs, touched=True) and not look(120, **ours) and not look(1, **theirs)
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs, by_other=True) and not look(0, touched=True)
    assert not look(120) and not look(1, ball=(0, 5300, 93))
    look = judged(KickoffLane(judged_seconds=1.0))
    assert not look(240, **theirs, touched=True, by_other=True)
    assert look(120)  # both at once is one's own
