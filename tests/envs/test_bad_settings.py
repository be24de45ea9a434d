"""Settings that cannot work are refused in one line that names the class: beyond the ranges of test_settings.py."""

from functools import partial

import numpy as np
import pytest
from gymnasium.spaces import Box, Dict

import envs
from benchmarks.rlgym_guide import build_env
from envs.actions import ActionTable, ContinuousAction, HybridTable, LookupTable, MultiDiscreteAction
from envs.adapters.gymnasium_envs import _entries
from envs.adapters.rlgym_pool import RLGymPool
from envs.pool.rocket_pool import RocketSimPool
from envs.processes.process_pool import ProcessPool
from envs.resets import ExplicitState, Kickoff
from envs.sim.arena import init_rocketsim
from tests.envs.adapters.tasks import Entries, Of, Worded
from tests.envs.fakes import written
from tests.envs.processes.process_pool_parts import Trouble, short_games

CARS = [[0, -1000, 17], [0, 1000, 17]]
SLASH = Dict({"a/b": Box(0, 1, (2,)), "a": Dict(b=Box(0, 1, (2,)))})


def charge():
    return envs.NegativeVelocityTowardOwnGoalReward()


def face():
    return envs.FaceBallReward()


def pool(*arguments, **settings):
    return lambda: RocketSimPool(*arguments, **settings)


def explicit(*arguments, **settings):
    return lambda: ExplicitState(*arguments, **settings)


def acts(parser, actions):
    """The parser is given these actions, a row a car."""
    return lambda: parser.parse(np.asarray(actions), envs.GameState(1, len(actions), 0))


def eight(value, column=0, dtype=np.float32):
    row = np.zeros((1, 8), dtype)
    row[0, column] = value
    return row


def gym(*arguments, **settings):
    return lambda: envs.GymnasiumEnvs(*arguments, **settings)


def of(space):
    return gym(Of, 1, settings={"space": space})


VALUES = [
    # ---- pools
    (pool(num_arenas=0), "RocketSimPool: num_arenas"),
    (pool(2.0), "RocketSimPool: num_arenas .* whole number .*got 2.0"),
    (pool("2"), "RocketSimPool: num_arenas .* whole number .*got '2'"),
    *((pool(1, size), "RocketSimPool: team_size") for size in (0, 5, (1, -1), (1, 1, 1), [(1, 1), (0, 0)], [(5, 1)])),
    *((pool(1, size), f"RocketSimPool: team_size .* got {size}") for size in (1.5, None, True)),
    *((pool(1, size), "RocketSimPool: team_size") for size in ([(1, 1, 1)], [], [[1, 1.0]])),
    (pool(1, "11"), "RocketSimPool: team_size .* got '11'"),
    (pool(1, [[1, 1], 2]), r"RocketSimPool: team_size .* got \[\[1, 1\], 2\]"),
    (pool(1, tick_skip=0), "RocketSimPool: tick_skip"),
    (pool(1, tick_skip=8.5), "RocketSimPool: tick_skip .* whole number .*got 8.5"),
    (pool(1, action_delay_ticks=9), "RocketSimPool: action_delay_ticks"),
    (pool(1, action_delay_ticks=0.5), "RocketSimPool: action_delay_ticks .* got 0.5"),
    (pool(1, num_threads=0), "RocketSimPool: num_threads"),
    (pool(1, num_threads=1.5), "RocketSimPool: num_threads .* got 1.5"),
    (pool(1, first_arena=-1), "RocketSimPool: first_arena"),
    (pool(1, seed="a"), "RocketSimPool: seed must be one non-negative integer, got 'a'"),
    *((pool(1, seed=seed), f"RocketSimPool: seed .* got {seed}") for seed in (None, -5)),
    (lambda: RocketSimPool(1).reset(seed=-5), r"RocketSimPool: reset\(seed=...\).* got -5"),
    (
        pool(1, render_mode="ansi"),
        r"^RocketSimPool: render_mode \(--env.render_mode\) must be human or rgb_array, got 'a",
    ),
    (lambda: RLGymPool(build_env, 0), "num_envs .*at least 1"),
    (lambda: RLGymPool(build_env, 1.5), "RLGymPool: num_envs .* got 1.5"),
    (lambda: RLGymPool(build_env, 1, seed="a"), "RLGymPool: seed .* got 'a'"),
    (lambda: RLGymPool(build_env, 1).step(np.zeros(2)), "actions must be int64"),
    (lambda: RLGymPool(build_env, 1).step(np.zeros(3, int)), r"of shape \[2\]"),
    (lambda: RLGymPool(iter([build_env(1), build_env(2)]).__next__, 2), "zero_padding"),
    (lambda: ProcessPool(short_games, 1.5), "ProcessPool: num_workers .* got 1.5"),
    (lambda: ProcessPool(short_games, 1, seed=-1), "ProcessPool: seed .* got -1"),
    (lambda: ProcessPool(short_games, 1, timeout_seconds="9"), "ProcessPool: timeout_seconds .* '9'"),
    (lambda: ProcessPool(partial(Trouble, 2), 1, timeout_seconds=0), "timeout_seconds"),
    (lambda: ProcessPool(partial(Trouble, 4, broken=True), 2), "^Trouble: broken from the start$"),
    (lambda: ProcessPool(partial(RocketSimPool, 2, tick_skip=0), 1), "tick_skip"),
    (lambda: ProcessPool(partial(Trouble, 2), 3), "num_workers .*only 2"),
    (lambda: ProcessPool(partial(Trouble, 2), 0), "num_workers .*at least 1"),
    (lambda: ProcessPool(partial(Trouble, 0)), "at least 1"),
    (
        lambda: ProcessPool(partial(short_games, 5), 2, groups=3),
        r"groups \(--env.groups\) is 3, but there are only 2 wor",
    ),
    (lambda: ProcessPool(partial(short_games, 5), 2, groups=0), r"groups \(--env.groups\) must be"),
    *(
        (
            lambda size=size: ProcessPool(partial(RocketSimPool, num_arenas=size), 1),
            "RocketSimPool's num_arenas must be a",
        )
        for size in (2.0, "2", True)
    ),
    (gym("CartPole-v1", 2.0), "GymnasiumEnvs: num_envs .* got 2.0"),
    (gym("NoSuchGame-v1", 1), "--env_id NoSuchGame-v1"),
    (gym("CartPole-v1", 0), "num_envs must be a whole number from 1 to 65,536, got 0"),
    (gym("CartPole-v1", 10**30), "num_envs must be a whole number from 1 to 65,536, got 1000"),
    (gym(Worded, 1), r"observation said, a Text; remove it: .*filter_keys=\[here\]$"),
    (gym(Worded, 1, settings={"only": True}), "observation itself, a Text; add a wrapper"),
    (gym(Entries, 1, settings={"size": 3}), "--env_id Entries: --env_kwargs: .* 'size'"),
    (gym("my_file.Nothing", 1), "for a class of your own, pass its import path"),
    (of(SLASH), "two observations are called a/b; use names without"),
    (of(Dict({})), "--env_id Of: An empty Dict observation space is not allowed. Add"),
    (of(Dict(a=Dict({}))), "An empty Dict observation space is not allowed"),
    (lambda: _entries(Dict(a=Dict({})), ""), "observation a, an empty Dict; remove it with a wrapper"),
    (lambda: envs.AtariEnvs("brakeout", 1), "AtariEnvs: brakeout is not a ROM"),
    (lambda: envs.AtariEnvs("breakout", 1, settings={"colours": 3}), "AtariEnvs: .* 'colours'"),
    (lambda: envs.AtariEnvs("breakout", 0), "num_envs must be a whole number of at least 1"),
    # ---- rewards
    (lambda: envs.CombinedReward([charge()], [-1]), "NegativeVelocityTowardOwnGoalReward is never positive"),
    (lambda: envs.CombinedReward([envs.PerSecondReward(charge())], [-1]), "would reward what it penalizes"),
    (lambda: envs.CombinedReward([envs.BadOrientationReward()], [-0.1]), "use a positive weight"),
    (lambda: envs.CombinedReward([face()], [1, 2]), "CombinedReward: 1 rewards but 2 weights"),
    (lambda: envs.CombinedReward([], []), "CombinedReward"),
    (lambda: envs.AnnealedReward(charge(), [0, 1], [1, -1]), "AnnealedReward: .* use weights of 0 or more"),
    (lambda: envs.AnnealedReward(face(), [5, 5], [1, 0]), "AnnealedReward: steps must rise, with one weight each"),
    (lambda: envs.AnnealedReward(face(), [5], [1, 0]), "AnnealedReward: steps must rise, with one weight each"),
    (lambda: envs.EventReward(), "EventReward: all weights are zero; set one of goal, team_goal"),
    (lambda: envs.AdvancedTouchReward(0, 0), "AdvancedTouchReward: all weights are zero"),
    (lambda: envs.BallTravelReward(goal=0, own_goal=0), "BallTravelReward: all weights are zero"),
    (lambda: envs.PotentialReward(envs.StrongHitReward()), "StrongHitReward depends on earlier states"),
    (lambda: envs.ClippedReward(face(), 0.5, 1), "ClippedReward: bounds must satisfy low <= 0 <= high"),
    (lambda: envs.ClippedReward(face(), 0, 0), "ClippedReward: bounds must satisfy low <= 0 <= high"),
    (lambda: envs.RewardSignals({}), "RewardSignals: signals must name"),
    (lambda: envs.PhasedReward({}), "PhasedReward: rewards must name at least one phase"),
    # ---- conditions
    (lambda: envs.AnyOf([]), "AnyOf: conditions must contain at least one condition"),
    (
        lambda: envs.AnyOf(envs.GoalCondition(), envs.TimeoutCondition()),
        "AnyOf: GoalCondition terminates, TimeoutCondition truncates; set truncates",
    ),
    (lambda: envs.AllOf(envs.TimeoutCondition(), envs.GoalCondition()), "AllOf: TimeoutCondition truncates"),
    # ---- state setters
    (lambda: envs.PhasedStates({}), "PhasedStates: setters must name at least one phase"),
    (lambda: envs.MixedStates([Kickoff()], [1, 2]), "must be >= 0, one for each setter, with a positive sum, got 1"),
    (lambda: envs.MixedStates([Kickoff()], [0]), "MixedStates: weights must be >= 0, .* positive sum"),
    (lambda: envs.MixedStates([], []), "MixedStates: weights must be >= 0, .* got 0 setters"),
    (explicit([]), "ExplicitState: car_pos must have one entry for each car"),
    (explicit([[5000, 0, 17]]), r"ExplicitState: car 0 .* outside the field, at \(5000.0, 0.0, 17.0"),
    (explicit(CARS, [0, 0, -1]), "ExplicitState: the ball would start outside the field"),
    (explicit(CARS, ball_vel=[6100, 0, 0]), "ExplicitState: the ball .* velocity 6100 .* most 6000"),
    (explicit(CARS, ball_ang_vel=[0, 7, 0]), "ExplicitState: the ball .* angular velocity 7 .* 6"),
    (explicit(CARS, car_vel=[[0, 0, 0]]), "ExplicitState: car_vel must have one entry for each car"),
    (explicit(CARS, car_vel=[[0, 0, 0], [2000, 2000, 0]]), "car 1 .* velocity 2828.43 .* most 2300"),
    (explicit(CARS, car_ang_vel=np.full((2, 3), 5)), "car 0 .* angular velocity 8.66.* most 5.5"),
    (explicit(CARS, car_vel=[[1, 2]] * 2), "ExplicitState: car_vel must be a list of length 3, got"),
    (explicit(CARS, car_yaw=[0]), "ExplicitState: car_yaw must have one entry for each car"),
    (explicit(CARS, car_yaw=[0, 0], car_rotation=CARS), "set car_yaw or car_rotation, not both"),
    (explicit(CARS, boost=101), "ExplicitState: car 0 .* boost 101; it must be from 0 to 100"),
    (explicit(CARS, boost=[1, 2, 3]), "ExplicitState: boost must have one entry for each car"),
    (explicit(CARS, boost=True), "ExplicitState: boost must be a finite number, got True"),
    (explicit(CARS, on_ground=[True]), "ExplicitState: on_ground must have one entry for each car"),
    (explicit(CARS, on_ground=[1, 0]), "ExplicitState: on_ground must be true or false"),
    (explicit(CARS, pad_timers=[0]), "ExplicitState: pad_timers must be 34 numbers"),
    (explicit(CARS, pad_timers=[11] * 34), "ExplicitState: pad 0 .* timer 11; it must be from 0 to 10"),
    (lambda: written(ExplicitState(CARS), 2, 2), "ExplicitState: car_pos has 2 cars, .* have 4"),
    (lambda: envs.MechanicsLanes(Kickoff(), [envs.DribbleLane()], [1, 2]), "weights must be >= 0, one for each lane"),
    (lambda: envs.MechanicsLanes(Kickoff(), [envs.DribbleLane(), envs.DribbleLane(1)]), "different names, got drib"),
    (lambda: envs.MirroredStates(envs.MechanicsLanes(Kickoff())), "nest them the other way round"),
    (lambda: envs.DribbleLane(6, 5), "DribbleLane: hold_seconds must be below time_limit_seconds=5, got 6"),
    (lambda: envs.AirDribbleLane(5), "AirDribbleLane: hold_seconds must be below time_limit_seconds=4, got 5"),
    (lambda: envs.KickoffLane(judged_seconds=9), "KickoffLane: judged_seconds must be below time"),
    # ---- observation builders
    (lambda: envs.AdvancedObs(pos_coef=(1, 2)), "AdvancedObs: pos_coef must be one number or three"),
    (lambda: envs.EntityObs(pos_coef=np.nan), "EntityObs: pos_coef must be a finite number"),
    (lambda: envs.AdvancedObs(zero_padding=2).space(3, 1), "AdvancedObs: zero_padding=2 is too small for 3 cars"),
    (lambda: envs.EntityObs(2).space(1, 3), "EntityObs: max_cars_per_team=2 is too small for 3 cars"),
    (lambda: RocketSimPool(1, 4, obs=envs.DefaultObs()), "DefaultObs: zero_padding=3 is too small for 4 cars"),
    (
        lambda: envs.PrivilegedObs(envs.EntityObs(), envs.AdvancedObs()).space(1, 1),
        "PrivilegedObs: actor must build flat",
    ),
    (
        lambda: envs.PrivilegedObs(envs.AdvancedObs(), envs.EntityObs()).space(1, 1),
        "PrivilegedObs: critic must build fla",
    ),
    (lambda: envs.TeamRoleObs(envs.EntityObs()).space(1, 1), "TeamRoleObs: inner must build flat"),
    # ---- action parsers
    (acts(LookupTable(), [0.5]), "^LookupTable: actions must be integers"),
    (acts(LookupTable(), [True]), "^LookupTable: actions must be integers"),
    (acts(LookupTable(), [[1]]), "^LookupTable: actions must be integers"),
    (acts(LookupTable(), [90]), "^LookupTable: action 90 is outside the table; use 0..89"),
    (acts(HybridTable(), [3, 128]), "^HybridTable: action 128 is outside the table; use 0..127"),
    (acts(HybridTable(), [-1]), "^HybridTable: action -1 is outside"),
    (acts(envs.StickyButtons(envs.StateAwareTable(), 2), [90]), "^StateAwareTable: action 90"),
    (lambda: envs.StateAwareTable(np.eye(8)), "^StateAwareTable: table must contain an all-zero row"),
    (lambda: ActionTable(np.zeros((3, 7))), r"^ActionTable: table must have the shape \[rows, 8\], got \[3, 7\]"),
    (lambda: ActionTable(np.zeros((0, 8))), "^ActionTable: table must have the shape"),
    (lambda: ActionTable([[0] * 8, [0] * 7]), "^ActionTable: table must be rows of eight numbers"),
    (lambda: ActionTable([["x"] * 8]), "^ActionTable: table must be rows of eight numbers"),
    (lambda: ActionTable(eight(1.5)), "^ActionTable: table must contain"),
    (lambda: ActionTable(eight(np.nan)), "^ActionTable: table must contain"),
    (lambda: ActionTable(eight(0.5, 6)), "^ActionTable: table must contain"),
    (acts(ContinuousAction(), eight(np.nan)), "^ContinuousAction: actions must be finite, got nan"),
    (acts(ContinuousAction(), eight(-np.inf, 2)), "^ContinuousAction: actions must be finite, got -inf"),
    (acts(ContinuousAction(), np.zeros(8)), "^ContinuousAction: actions must be floats of shape"),
    (acts(ContinuousAction(), np.zeros((2, 7))), "^ContinuousAction: actions must be floats of shape"),
    (acts(ContinuousAction(), np.zeros((2, 8), int)), "^ContinuousAction: actions must be floats of shape"),
    (acts(MultiDiscreteAction(), eight(1.0)), "^MultiDiscreteAction: actions must be integers of shape"),
    (acts(MultiDiscreteAction(), np.zeros(8, int)), "^MultiDiscreteAction: actions must be integers of shape"),
    (acts(MultiDiscreteAction(), eight(3, 4, int)), "^MultiDiscreteAction: choice 3 in column 4 is outside 0..2"),
    (acts(MultiDiscreteAction(), eight(2, 5, int)), "^MultiDiscreteAction: choice 2 in column 5 is outside 0..1"),
    (acts(MultiDiscreteAction(), eight(-1, 0, int)), "^MultiDiscreteAction: choice -1 in column 0"),
    (lambda: MultiDiscreteAction(bins=4), "^MultiDiscreteAction: bins must be odd"),
    (lambda: envs.ClipAction(LookupTable(), 0.5, 0), "^ClipAction: .* low <= high"),
    (lambda: envs.ClipAction(LookupTable(), -2, 0), "^ClipAction: .* -1 <= low"),
    (lambda: envs.ClipAction(LookupTable(), 0, 1.5), "^ClipAction: .* high <= 1"),
    (lambda: envs.ClipAction(LookupTable(), np.nan, 1), "^ClipAction: .* got low=nan"),
    (lambda: envs.ClipAction(LookupTable(), [0, 0], 1), "^ClipAction: .* one number or five"),
    # ---- parameters
    (lambda: envs.Uniform(2, 2), "Uniform: .*lower one first.* for a single value, use Constant"),
    (lambda: envs.MultirangeUniform([]), "MultirangeUniform: intervals"),
    (lambda: envs.MultirangeUniform([[7, 10], [20, 15]]), "MultirangeUniform: .*20 and 15"),
    (
        gym("CartPole-v1", parameters=envs.ParameterRandomizer({"lenght": envs.Uniform(1, 2)})),
        "no parameter lenght; known",
    ),
]
TYPES = [
    (pool(1, obs=0), "obs .* must be an envs ObsBuilder, got int"),
    (pool(1, obs=envs.GoalReward()), "obs .* must be an envs ObsBuilder, got GoalReward"),
    (pool(1, obs=envs.AdvancedObs), r"obs .* got the class AdvancedObs; write AdvancedObs\(\)"),
    (pool(1, action=envs.DefaultObs()), "action .* must be .* ActionParser, got DefaultObs"),
    (
        pool(1, reward=envs.GoalReward),
        r"reward .* must be an envs Reward, got the class GoalReward; write GoalReward\(\)",
    ),
    (pool(1, state_setter="x"), "state_setter .* must be .* StateSetter, got str"),
    (pool(1, done=[Kickoff()]), "done .* must be .* DoneCondition, got Kickoff"),
    (pool(1, done=envs.GoalCondition), r"the class GoalCondition; write GoalCondition\(\)"),
    (pool(1, done="goal"), "done .* got str"),
    (pool(1, parameters={"gravity": 600}), r"parameters .--env.parameters. must be an envs ParameterRandomizer"),
    (gym("CartPole-v1", parameters={"length": 1}), "must be an envs ParameterRando"),
    (lambda: RLGymPool(lambda: 3, 1), "build_env .*must build an RLGym, got int"),
    (lambda: RLGymPool(build_env(), 1), "RLGymPool: build_env .* function .* got RLGym, which is already an RLGym"),
    (lambda: RLGymPool(build_env, 1, loggers=[3]), r"loggers \(--env.loggers\) must be an envs StateLogger, got int"),
    (lambda: ProcessPool(lambda num_envs=2, seed=0: None, 1), "top level of a module"),
    (lambda: ProcessPool(lambda: None, 1), "must have a parameter seed, and num_arenas or num_envs"),
    (lambda: envs.RLGymReward(envs.GoalReward()), "RewardFunction"),
    (lambda: envs.CombinedReward(["x"], [1]), "CombinedReward: rewards must be .* got str"),
    (lambda: envs.CombinedReward([envs.InAirReward], [1]), r"the class InAirReward; write InAirReward\(\)"),
    (lambda: envs.RewardSignals({"a": envs.GoalReward}), r"signals\[a\] .* the class GoalReward; write GoalReward\(\)"),
    (lambda: envs.PhasedReward({"a": envs.RewardSignals({"x": envs.GoalReward()})}), "into each signal instead"),
    (
        lambda: envs.AllOf(envs.GoalCondition),
        r"AllOf: conditions .* got the class GoalCondition; write GoalCondition\(\)",
    ),
    (lambda: envs.AnyOf(envs.GoalCondition(), "x"), "AnyOf: conditions .* got str"),
]
FILES = [
    (pool(1, collision_meshes="/nowhere"), "--env.collision_meshes"),
    (lambda: init_rocketsim("/nowhere"), "/nowhere"),
]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        pytest.param(build, error, message, id=message)
        for error, refused in ((ValueError, VALUES), (TypeError, TYPES), (FileNotFoundError, FILES))
        for build, message in refused
    ],
)
def test_what_cannot_work_is_one_line(build, error, message):
    if "ROM" in message or "colours" in message:
        pytest.importorskip("ale_py")
    with pytest.raises(error, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)


def test_zero_sum_and_potential_of_a_charge_may_have_any_weight():
    parts = [envs.TeamSpiritReward(charge(), opponent_scale=1), envs.PotentialReward(charge())]
    envs.CombinedReward(parts, [-1, -1])


def test_numpys_whole_numbers_are_whole():
    made = RocketSimPool(np.int64(2), (np.int64(1), 0), tick_skip=np.int32(4), num_threads=1, seed=np.int64(3))
    same = RocketSimPool(2, (1, 0), tick_skip=4, num_threads=1, seed=3)
    np.testing.assert_array_equal(made.reset()[0], same.reset()[0])
