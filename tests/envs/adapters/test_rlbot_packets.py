"""Packets of RLBot v5, really packed and unpacked, beside the states of RocketSim that they are made of."""

from contextlib import closing

import numpy as np
import pytest

pytest.importorskip("rlbot")
from rlbot import flat

from envs.actions import ContinuousAction, LookupTable
from envs.adapters.rlbot_bot import PacketPlayer, instantiate
from envs.adapters.rlbot_game import PacketWriter, field
from envs.adapters.rlbot_packets import MISSING_FIELDS, PacketReader
from envs.bots import BallChaser, KickoffThenShoot, TeamBots
from envs.dones import GoalCondition, TimeoutCondition
from envs.obs import AdvancedObs, DefaultObs, EntityObs, ObsBuilder
from envs.parameters import Constant, ParameterRandomizer
from envs.pool.rocket_pool import RocketSimPool
from envs.resets import Kickoff, RandomState
from envs.state.game_state import GameState
from tests.envs.fakes import HeadOn, build

KICKOFF, ACTIVE, COUNTDOWN, PAUSED = (getattr(flat.MatchPhase, n) for n in ("Kickoff", "Active", "Countdown", "Paused"))
EXACT = (
    *("is_holding_jump", "has_jumped", "is_jumping", "has_flipped", "has_double_jumped", "is_flipping"),
    *("has_flip", "can_flip", "is_boosting", "is_supersonic", "is_demoed", "touched", "last_touch", "controls", "team"),
    *("episode_ticks", "ticks_since_touch", "goals", "shots", "saves", "demos", "boost", "got_flip_reset"),
)
CLOSE = ("handbrake", "air_time_since_jump", "demo_respawn_timer", "boost_active_time", "supersonic_time", "pad_timers")
VIEWS = ("ball_pos", "ball_vel", "ball_ang_vel", "car_pos", "car_vel", "car_ang_vel", "car_forward", "car_up")


def sent(packet):
    """As it comes out of the wire."""
    return flat.GamePacket.unpack(packet.pack())


def wild_pool(team_size=2, seed=0, **settings):
    """Cars that bump demolish each other."""
    demolish = ParameterRandomizer({"demo_mode": Constant(1), "respawn_delay": Constant(0.3)})
    given = {"state_setter": RandomState(), "done": TimeoutCondition(1000), "parameters": demolish} | settings
    return RocketSimPool(
        1, team_size, tick_skip=1, action_delay_ticks=0, num_threads=1, seed=seed, action=ContinuousAction(), **given
    )


def shuffled(packet, order):
    """The same with its players in another order, and the pads backwards."""
    players = [packet.players[i] for i in order]
    return flat.GamePacket(players, packet.boost_pads[::-1], packet.balls, packet.match_info)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "every"), [(2, 6), (1, 8)])
def test_a_state_comes_back_as_it_was(seed, every):
    """Also with the players in any order; `every` ticks the bot looks, and what happened in between is in it.

    Only wheels may still be thought on the ground for some ticks after a jump began, which no packet tells.
    """
    setter = HeadOn() if seed == 1 else RandomState()
    pool, writer, rng = wild_pool(seed=seed, state_setter=setter), PacketWriter(), np.random.default_rng(seed)
    pads, order = field().boost_pads[::-1], [2, 0, 3, 1]  # of the blue the first stays before the second
    pool.reset(seed=seed)
    state, begun, seen = pool.state, {}, {}
    packet = sent(shuffled(writer.write(state, KICKOFF), order))
    reader = PacketReader(packet, pads)
    table, chaser = LookupTable().table, BallChaser()
    touched, ticks_since_touch, wrong_on_ground = np.zeros((1, 4), bool), 0, []
    begun = {name: getattr(state, name).copy() for name in ("goals", "shots", "saves", "demos")}
    for tick in range(900):
        if tick % every == 0:
            found = reader.state(packet)
            ticks_since_touch = 0 if touched.any() else ticks_since_touch + every * bool(tick)
            wanted = {name: getattr(state, name) for name in EXACT + CLOSE} | {
                "touched": touched,
                "ticks_since_touch": np.array([ticks_since_touch]),
            }
            wanted |= {name: getattr(state, name) - at for name, at in begun.items()}
            wrong_on_ground.append(found.on_ground != state.on_ground)
            assert state.is_jumping[wrong_on_ground[-1]].all(), tick
            for name in EXACT:
                assert (np.asarray(getattr(found, name)) == wanted[name]).all(), (tick, name)
                seen[name] = seen.get(name, 0) + np.count_nonzero(wanted[name])
            for name in CLOSE:
                assert np.allclose(getattr(found, name), wanted[name], atol=1e-4), (tick, name)
                seen[name] = seen.get(name, 0) + np.count_nonzero(wanted[name])
            for name in VIEWS:
                for view in ("world", "mirrored", "own"):
                    ours, theirs = (getattr(getattr(each, view), name) for each in (found, state))
                    assert np.allclose(ours, theirs, rtol=1e-5, atol=1e-4), (tick, view, name)
            assert found.flip_time[found.has_flipped] == pytest.approx(state.flip_time[state.has_flipped])
            touched = np.zeros((1, 4), bool)
        if tick % 8 == 0:
            rows = table[rng.integers(90, size=4)] if tick // 240 % 2 else chaser.act(state)[0]
        pool.step(rows)
        touched = touched | state.touched
        writer.frame += 1
        packet = sent(shuffled(writer.write(state, ACTIVE), order))
        reader.follow(packet)
    pool.close()
    never = {name for name, count in seen.items() if not count}
    assert np.mean(wrong_on_ground) < 0.005
    assert seed != 1 or never <= {"goals", "shots", "saves", "got_flip_reset"}


def match(decisions, seed):
    """A match of 2v2, ticked for its packets and, beside it, in steps of a pool: what a reader says and what is true.

    The pool's step ends with the tick in which a goal falls at the earliest, so both have the same decisions.
    """
    settings = {"state_setter": Kickoff(), "done": GoalCondition(), "action": ContinuousAction(), "num_threads": 1}
    ticked, stepped = (
        RocketSimPool(1, 2, tick_skip=skip, action_delay_ticks=0, seed=seed, **settings) for skip in (1, 8)
    )
    writer, pads, begins = PacketWriter(), field().boost_pads, True
    players = TeamBots(BallChaser(), KickoffThenShoot())
    with closing(ticked), closing(stepped):
        ticked.reset()
        stepped.reset()
        for _ in range(decisions):
            if begins:
                packet = sent(writer.write(ticked.state, KICKOFF))
                reader = PacketReader(packet, pads)
                players.reset(np.ones(1, bool), stepped.state)
            yield reader.state(packet), stepped.state, begins
            rows = players.act(stepped.state)[0]
            for _ in range(8):
                *_, scored, _, _ = ticked.step(rows)
                writer.frame += 1
                if scored.any():
                    break
                packet = sent(writer.write(ticked.state, ACTIVE))
                reader.follow(packet)
            *_, terminated, _, _ = stepped.step(rows)
            begins = bool(terminated.any())
            assert begins == bool(scored.any())


@pytest.mark.learning
def test_observations_of_a_whole_match_are_those_of_the_pool(record_property):
    """Five minutes; docs/reproducibility.md has the largest difference of each feature.

    Wheels leave the ground some ticks after a jump began, which no packet tells. A bump may push a car over the
    supersonic speed for less than a tick.
    """
    builders = [(each(), each()) for each in (DefaultObs, AdvancedObs, EntityObs)]
    names = [
        [f"{each.group} {each.name}" for each in ours.meanings(2, 2) for _ in range(each.width)] for ours, _ in builders
    ]
    apart, far, goals = {}, {}, 0
    for found, true, begins in match(4500, seed=0):
        goals += begins
        for (ours, theirs), own in zip(builders, names, strict=True):
            seen = []
            for builder, state in ((ours, found), (theirs, true)):
                if begins:
                    builder.reset(np.ones(1, bool), state)
                seen.append(build(builder, state)[0])
            difference = np.abs(seen[0] - seen[1]).reshape(-1, len(own))
            for column, name in enumerate(own):
                key = f"{type(ours).__name__}: {name}"
                apart[key] = max(apart.get(key, 0), float(difference[:, column].max()))
                far[key] = far.get(key, 0) + np.count_nonzero(difference[:, column] > 1e-3) / len(difference) / 4500
    for key in apart:
        record_property(key, f"{apart[key]:.1e} {far[key]:.5f}")
    record_property("kickoffs", goals)
    guessed = {key for key in far if key.endswith(("on_ground", "supersonic"))}
    assert goals > 3 and max(far[key] for key in guessed) < 0.005
    assert not any(far[key] for key in far.keys() - guessed)


@pytest.mark.slow
@pytest.mark.parametrize("counts_up", [False, True])
def test_pad_timers_count_down_whichever_way_the_game_counts(counts_up):
    """RLBot's server says seconds until a pad is back, its schema seconds since it was taken."""
    state, writer = GameState.from_numbers([[0, 0, 17]], 1), PacketWriter()

    def packet():
        made, timers = writer.write(state, ACTIVE), state.pad_timers[0]
        pads = [flat.BoostPadState(pad.is_active, pad.timer) for pad in made.boost_pads]
        for number, cooldown in ((1, 4.0), (3, 10.0)):
            if counts_up and timers[number] > 0:
                pads[number] = flat.BoostPadState(False, cooldown - timers[number])
        return sent(flat.GamePacket(made.players, pads, made.balls, made.match_info))

    reader = PacketReader(packet(), field().boost_pads)
    state.pad_timers[0, 3], state.pad_timers[0, 1] = 10.0, 4.0
    for tick in range(1300):
        if tick % 100 not in range(20, 30):  # ten packets in a row are lost
            now = packet()
            reader.follow(now)
            assert reader.state(now).pad_timers[0, :4] == pytest.approx(state.pad_timers[0, :4], abs=1e-4), tick
        state.pad_timers[:] = np.maximum(state.pad_timers - 1 / 120, 0)
        writer.frame += 1


def test_a_car_stays_supersonic_for_a_while_below_the_least_speed():
    """The game's own flag does not: 2,200 uu/s and more."""
    state, writer = GameState.from_numbers([[0, 0, 17]], 1, car_vel=[[2250, 0, 0]]), PacketWriter()
    packet = sent(writer.write(state, ACTIVE))
    reader, found = PacketReader(packet, field().boost_pads), {}
    for speed in [2250, *[2150] * 200, 2250, 2090, 2150]:
        writer.frame += 1
        state.world.car_vel[0, 0, 0] = speed
        packet = sent(writer.write(state, ACTIVE))
        assert packet.players[0].is_supersonic == (speed >= 2200)
        reader.follow(packet)
        found[writer.frame] = bool(reader.state(packet).is_supersonic[0, 0])
    assert [frame for frame, fast in found.items() if fast] == [*range(1, 121), 202]


class Clock(ObsBuilder):
    """Says how many ticks the episode has, and the car's own last throttle."""

    def space(self, num_blue, num_orange):
        return AdvancedObs().space(num_blue, num_orange)

    def build(self, state, out):
        out[:] = 0
        out[..., 0], out[..., 1] = state.episode_ticks[:, None], state.controls[..., 0]


class Steering:
    """A policy that steers further to the right with each decision, and remembers when games began."""

    def __init__(self):
        self.seen, self.begins = [], []

    def __call__(self, obs, begins, mask):
        self.seen.append(obs[0, :2].tolist())
        self.begins.append(bool(begins[0]))
        return np.full((1, 8), len(self.seen) / 100, np.float32)


def played(frames, delay=1, phases=None, spoilt=None):
    """Frame -> throttle after it, and the policy."""
    state, policy, writer = GameState.from_numbers([[0, 0, 17], [0, 99, 17]], 1), Steering(), PacketWriter()
    player, found = PacketPlayer(policy, Clock(), ContinuousAction(), 8, delay, keep=True), {}
    for frame in frames:
        writer.frame = frame
        packet = writer.write(state, (phases or {}).get(frame, ACTIVE))
        if spoilt and frame in spoilt:
            packet = flat.GamePacket(*spoilt[frame](packet), packet.balls, packet.match_info)
        packet = sent(packet)
        found[frame] = round(float(player.controls(packet, 0, field().boost_pads)[0]), 4)
    return found, policy, player


def test_decisions_come_every_tick_skip_and_a_lost_packet_delays_one():
    found, policy, player = played(range(100, 125))
    assert [found[f] for f in (100, 107, 108, 115, 116, 124)] == [0.01, 0.01, 0.02, 0.02, 0.03, 0.04]
    assert [[round(x, 4) for x in each] for each in policy.seen] == [[0, 0], [8, 0.01], [16, 0.02], [24, 0.03]]
    assert [d[0] for d in player.decisions] == [100, 108, 116, 124]
    found, _, _ = played(range(100, 125), delay=4)  # of which the game itself brings one tick
    assert [found[f] for f in (100, 102, 103, 110, 111, 119)] == [0, 0, 0.01, 0.01, 0.02, 0.03]
    found, policy, _ = played([f for f in range(100, 125) if f not in (108, 109, 115)])
    assert [found[f] for f in (107, 110, 114, 116, 124)] == [0.01, 0.02, 0.02, 0.03, 0.04]
    assert [seen[0] for seen in policy.seen] == [0, 10, 16, 24]
    found, _, _ = played([f for f in range(100, 130) if f != 108], delay=8)  # of the second decision
    assert [found[f] for f in (106, 107, 114, 115, 122, 123)] == [0, 0.01, 0.01, 0.02, 0.02, 0.03]
    for every, delay in ((2, 8), (4, 6), (8, 4)):  # no packet comes between an action and the next decision
        found, policy, _ = played(range(100, 164, every), delay=delay)
        assert [round(x * 100) for x in found.values() if x][:: 8 // every] == [*range(1, len(policy.seen))]
    phases = {f: PAUSED for f in range(104, 108)} | {f: COUNTDOWN for f in range(120, 130)} | {130: KICKOFF}
    found, policy, _ = played(range(100, 140), phases=phases)
    assert found[105] == found[125] == 0 and found[103] == 0.01 and found[130] == 0.04
    assert policy.begins == [True, False, False, True, False] and [s[0] for s in policy.seen] == [0, 8, 16, 0, 8]


def turned(player):
    """To where there is nothing."""
    player.physics.rotation.yaw = np.nan
    return player


@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (lambda p: (p.players[:1], p.boost_pads), "1v0 players instead of 1v1"),
        (lambda p: ([*p.players, p.players[0]], p.boost_pads), "2v1 players instead of 1v1"),
        (lambda p: (p.players, p.boost_pads[1:]), "33 boost pads instead of 34"),
        (lambda p: ([turned(p.players[0]), p.players[1]], p.boost_pads), "numbers that are not finite"),
        (lambda p: (p.players, [flat.BoostPadState(True, np.inf), *p.boost_pads[1:]]), "numbers that are not finite"),
    ],
)
def test_a_car_does_nothing_while_the_packets_are_not_those_of_its_match(spoilt, said, caplog):
    found, policy, _ = played(range(100, 125), spoilt=dict.fromkeys(range(105, 110), spoilt))
    assert [found[f] for f in (104, 105, 109, 110, 115, 116)] == [0.01, 0, 0, 0.02, 0.02, 0.03]
    assert policy.begins == [True, False, False, False] and np.isfinite(policy.seen).all()
    assert caplog.messages == [f"the game sends {said}; the car does nothing until this stops"]


def test_settings_become_objects():
    stacked = instantiate(
        {
            "class_path": "envs.obs.combinators:StackedObs",
            "init_args": {"inner": {"class_path": "envs.obs.default:DefaultObs", "init_args": {}}, "num_frames": 2},
        }
    )
    assert (type(stacked).__name__, type(stacked.inner).__name__, stacked.num_frames) == ("StackedObs", "DefaultObs", 2)
    guide = instantiate({"class_path": "envs.obs.default:DefaultObs.rlgym_guide"})
    assert guide.zero_padding is None
    state = GameState.from_numbers([[0, 0, 17]])
    assert all(hasattr(state, name) for name in MISSING_FIELDS)
