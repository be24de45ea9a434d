"""RocketSimPool: many RocketSim arenas as one Gymnasium vector environment."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray
from rlgym.rocket_league.common_values import TICKS_PER_SECOND

from envs.actions import ActionParser, ContinuousAction, LookupTable
from envs.actions.base import get_action_mask, parse_actions
from envs.actions.nearest import nearest_actions
from envs.checks import check_finite, check_seed, parse_team_sizes, to_action_array
from envs.component import Phased, added_metrics
from envs.dones import DoneCondition, check_done
from envs.loggers import StateLogger
from envs.obs import DefaultObs, ObsBuilder
from envs.obs.base import build_obs, build_obs_checked
from envs.parameters import ParameterRandomizer
from envs.parameters.live import TunableArenas
from envs.pool import settings
from envs.pool.episodes import HEADLINES, EpisodeTracker, GameCounts, StepTimers, check_snapshot, load_components
from envs.pool.frame import render_frame
from envs.pool.inspector import PoolInspector
from envs.pool.players import Bot, CarSlots, GuestBots, compute_controls
from envs.pool.symmetry import find_symmetry
from envs.pool.videos import EpisodeVideos, RocketSimVis
from envs.resets import Kickoff, StateSetter
from envs.rewards.base import Reward
from envs.rewards.car import default_reward
from envs.rewards.combinators import AnnealedReward, RewardSignals
from envs.sim.arena import SimArena, init_rocketsim
from envs.state.game_state import GameState
from envs.state.layout import Bool, Float
from fabric_rl.base.processes import available_threads
from fabric_rl.base.state_schema import load_child_state
from fabric_rl.base.symmetry import Symmetry

RENDER_MODES = ("human", "rgb_array")


class RocketSimPool(VectorEnv[Float, NDArray[np.int64], NDArray[Any]]):
    """Vector environment of `num_arenas` games with real Rocket League physics; every car is one sub-environment.

    The `num_envs` = N sub-environments are the cars, arena by arena, blue before orange. If all arenas have equal
    teams, N = arenas x cars. Opponents are sub-environments too, so every car learns. All cars of an arena end their
    episode together.

    Autoreset is `SAME_STEP`: when an episode ends, `obs` is already the first observation of the next episode, and
    `infos["final_obs"]` (`[N, D]`, valid where `infos["_final_obs"]`) is the last observation of the old one.

    An action parser with masks puts them into `infos["action_mask"]` (`[N, n]` bool, for the returned observations).
    `RewardSignals` puts its rewards into `infos["reward_signals"]` (`[N, K]` float32, for the step just taken).
    `infos["result"]` (`[N]` float32) is 1 for the team whose goal ended the episode, 0 for the other team, and 0.5 if
    no goal ended it.

    Threads step slices of the arenas with the GIL released. Each arena has its own random generator and starts every
    episode with a new ball and new cars, so trajectories do not depend on the number of threads or on earlier episodes.

    Attributes:
        state: Current `GameState`. Right after `step`, arenas whose episode ended already show their next episode.
        guests: Bots that play some of the cars, see `GuestBots`; initially none.
        sides: Arena of each car (`[N]`), and its team (`[N]`, 0 blue and 1 orange).
        team_sizes: (blue, orange) of the rotation of arenas.
        num_seeds: Number of consecutive seeds that `reset(seed=...)` uses: one per arena.
    """

    headlines = HEADLINES
    only_in_training = settings.ONLY_IN_TRAINING
    gives_spaces = settings.GIVES_SPACES

    def __init__(
        self,
        num_arenas: int = 64,
        team_size: int | tuple[int, int] | list[tuple[int, int]] = 1,
        obs: ObsBuilder | None = None,
        action: ActionParser | None = None,
        reward: Reward | None = None,
        state_setter: StateSetter | None = None,
        done: DoneCondition | Sequence[DoneCondition] | None = None,
        tick_skip: int = 8,
        action_delay_ticks: int = 1,
        num_threads: int | None = None,
        seed: int = 0,
        collision_meshes: str | None = None,
        first_arena: int = 0,
        loggers: Sequence[StateLogger] = (),
        parameters: ParameterRandomizer | None = None,
        render_mode: str | None = None,
        video_folder: str | Path | None = None,
        teacher: Bot | None = None,
    ) -> None:
        """Build the arenas. The default components come from RLGym's training guide.

        Args:
            num_arenas: Number of parallel games.
            team_size: Cars per team; or (blue, orange), to play without opponents or with uneven teams; or a list of
                (blue, orange), for example [[1, 0], [1, 1], [3, 3]], which the arenas use in rotation.
            obs: Observation builder. Default: `DefaultObs.rlgym_guide()`.
            action: Action parser. Default: `LookupTable()`, 90 discrete actions.
            reward: Reward. Default: in air 0.002, speed toward ball 0.01, ball velocity to goal 0.1, goal 10.
            state_setter: Initial states of episodes. Default: `Kickoff()`.
            done: One termination condition or several, any of which ends the episode. Default: goal (terminates), 30 s
                without a touch and 300 s in total (both truncate).
            tick_skip: Physics ticks (1/120 s) per step; the action is held for all of them.
            action_delay_ticks: Ticks at the start of a step that still use the previous action. RLGym uses 1.
            num_threads: Threads that step arenas. Default: the cores that this process may use, shared evenly between
                the local processes that `LOCAL_WORLD_SIZE` counts.
            seed: Seed of the first arena; arena `i` uses `seed + i`.
            collision_meshes: Folder with `soccar/*.cmf`. Default: the meshes of `rlgym[rl-sim]`.
            first_arena: Position of the first arena in the rotation of a list of team sizes. For pools that are split
                over several processes.
            loggers: Components that observe the game and report metrics, for example `TurtleRecoveryLogger()`.
            parameters: Physics parameters to randomize for each episode, see `envs.parameters`. Default: none.
            render_mode: "rgb_array" for `render()`, "human" to show every step in RocketSimVis (docs/watching.md).
            video_folder: Folder for mp4 files of the first arena's episodes 0, 1, 8, 27, ..., see `GymnasiumEnvs`.
            teacher: Bot whose actions are added to the infos as `teacher_action`, for agents that imitate it (see the
                setting `teacher_coef` of PPO agents). It never plays. Default: none.

        Raises:
            ValueError: A size or number is out of range.
            TypeError: A component has the wrong type.
            FileNotFoundError: The collision meshes are missing.
        """
        sizes = parse_team_sizes(team_size)
        if render_mode not in (None, *RENDER_MODES):
            modes = " or ".join(RENDER_MODES)
            raise ValueError(f"RocketSimPool: render_mode (--env.render_mode) must be {modes}, got {render_mode!r}")
        settings.check_pool_sizes(num_arenas, tick_skip, action_delay_ticks, num_threads, first_arena)
        seed = check_seed("RocketSimPool", seed)
        self.obs_builder = settings.component("obs", DefaultObs.rlgym_guide() if obs is None else obs, ObsBuilder)
        self.action_parser = settings.component("action", LookupTable() if action is None else action, ActionParser)
        self.action_parser.look_ahead(tick_skip, action_delay_ticks)
        self.reward = settings.component("reward", default_reward() if reward is None else reward, Reward)
        setter = Kickoff() if state_setter is None else state_setter
        self.state_setter = settings.component("state_setter", setter, StateSetter)
        self.given_dones = settings.done_conditions(done)
        self.done_conditions = (*self.given_dones, *self.state_setter.conditions())
        self.teacher: Bot | None = None if teacher is None else settings.component("teacher", teacher, Bot)
        watching = tuple(settings.component("loggers", logger, StateLogger) for logger in loggers)
        self.loggers = (*watching, *self.state_setter.loggers())

        init_rocketsim(collision_meshes)
        self._slots, self.team_sizes = CarSlots(sizes, num_arenas, first_arena), sizes
        self.guests, self.sides = GuestBots(self._slots), (self._slots.arena_of, self._slots.team_of)
        blue, orange = self._slots.num_blue, self._slots.num_orange
        self.state = GameState(num_arenas, blue, orange, self._slots.present)
        self.num_arenas, self.num_seeds, self.num_cars = num_arenas, num_arenas, blue + orange
        self.num_envs = self._slots.num_cars
        self.tick_skip, self.action_delay_ticks = tick_skip, action_delay_ticks
        self.single_observation_space: Space[Any] = settings.observation_space(self.obs_builder, blue, orange)
        self.single_action_space: Space[Any] = self.action_parser.action_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.render_mode, fps = render_mode, TICKS_PER_SECOND / tick_skip
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": RENDER_MODES, "render_fps": fps}
        self._viewer = RocketSimVis() if render_mode == "human" else None
        self._videos = EpisodeVideos(video_folder, fps, lambda: render_frame(self.state))
        if parameters is not None:
            settings.component("parameters", parameters, ParameterRandomizer)
        self._arenas = TunableArenas(self.state, tick_skip, action_delay_ticks, num_threads or available_threads())
        self.num_threads = self._arenas.num_threads
        self._episodes = EpisodeTracker(self._arenas, self.state_setter, parameters, seed)
        self._parameters = self._episodes.parameters
        self._look_ahead()
        self._counts, self._timers = GameCounts(), StepTimers()
        self._started, self._teaches = False, True

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Float, dict[str, Any]]:
        """Begin a new episode in every arena.

        Args:
            seed: If given, arena `i` is seeded with `seed + i`. None continues with the current random generators.
            options: Not used.

        Returns:
            Observations `[N, D]` float32 and infos.
        """
        if seed is not None:
            argument = "reset(seed=...), with arena i drawing from seed + i,"
            self._episodes.seed(check_seed("RocketSimPool", seed, argument))
        self.state.set_writable(True)
        self._begin_episodes(np.ones(self.num_arenas, np.bool_))
        obs = self._observe(self.state, first=not self._started)
        self._started = True
        self.state.set_writable(False)
        return self._slots.cars_of(obs), self._infos()

    def step(self, actions: NDArray[np.int64]) -> tuple[Float, NDArray[Any], Bool, Bool, dict[str, Any]]:
        """Apply `actions` for `tick_skip` ticks in every arena.

        Args:
            actions: `[N, ...]` actions, one per car; see the action parser.

        Returns:
            Observations `[N, D]` float32, rewards `[N]` float32, terminated `[N]` bool, truncated `[N]` bool, infos.

        Raises:
            ValueError: The action parser rejects the actions, or a component returned an array of the wrong shape.
            FloatingPointError: Rewards or observations contain NaN or infinity.
        """
        if not self._started:
            raise RuntimeError("RocketSimPool: call reset() before step()")
        state, timers = self.state, self._timers
        timers.start()
        state.set_writable(True)
        actions = self._slots.all_slots(to_action_array("RocketSimPool", actions))
        controls = self.guests.override_controls(parse_actions(self.action_parser, actions, state), state)
        touched_before = state.touched
        timers.stop("actions")
        self._arenas.step(controls.cars, self._episodes.rngs)
        self._parameters.steps += 1
        timers.stop("physics", at=self._arenas.gather_began)
        state.advance(controls.rows, self.tick_skip)
        timers.stop("gather")
        rewards = self._rewards()
        timers.stop("rewards")
        terminated, truncated = self._check_dones()
        done = terminated | truncated
        self._show(done)
        timers.stop("dones_and_resets")
        obs = self._observe(state)
        timers.stop("obs")
        self._counts.add_step(state.touched & ~touched_before, state.goal_scored, done)
        extra = self._reward_signals()
        if done.any():
            extra |= self._results(obs, done)
            self._begin_episodes(done)
            timers.stop("dones_and_resets")
            fresh = np.flatnonzero(done)
            obs[fresh] = self._observe(state.select(fresh))
            timers.stop("obs")
        infos = self._infos() | extra
        state.set_writable(False)
        timers.stop("actions")
        cars_of, arena_of = self._slots.cars_of, self._slots.arena_of
        return cars_of(obs), cars_of(rewards), terminated[arena_of], truncated[arena_of], infos

    def close_extras(self, **kwargs: Any) -> None:  # noqa: ANN401 - Gymnasium's signature
        """Stop the threads."""
        self._arenas.close()
        self._videos.close()
        if self._viewer is not None:
            self._viewer.close()

    def render(self) -> tuple[NDArray[np.uint8], ...]:
        """Return an image `[360, 640, 3]` of the first arena.

        Raises:
            RuntimeError: `render_mode` is not "rgb_array".
        """
        if self.render_mode != "rgb_array":
            raise RuntimeError(f"RocketSimPool: render() needs render_mode='rgb_array', got {self.render_mode!r}")
        return (render_frame(self.state),)

    def finish_videos(self) -> None:
        """Wait until the videos of finished episodes are written."""
        self._videos.finish()

    @property
    def arenas(self) -> list[Any]:
        """The live `RocketSim.Arena` objects. You can read them at any time; changes take effect in the next step."""
        return [sim.arena for sim in self._arenas.sims]

    @property
    def simulations(self) -> list[SimArena]:
        """The arenas with their cars and pads; a broken one is replaced when its next episode begins."""
        return self._arenas.sims

    @property
    def reward_signals(self) -> tuple[str, ...]:
        """Names of the columns of `infos["reward_signals"]`; none unless the reward is a `RewardSignals`."""
        return self.reward.names if isinstance(self.reward, RewardSignals) else ()

    @property
    def inspector(self) -> PoolInspector:
        """A new inspector of all episodes from now on, for the callback `fabric_rl.callbacks.Debug`."""
        return PoolInspector(self)

    @property
    def layout(self) -> dict[str, str]:
        """Description of observations and actions, to check that a checkpoint fits; see `envs.pool.settings.layout`."""
        return settings.layout(self.obs_builder, self.action_parser, self.state.num_blue, self.state.num_orange)

    def find_symmetry(self) -> Symmetry | str:
        """Return how observations and actions change when left and right are exchanged; see `envs.pool.symmetry`."""
        return find_symmetry(self)

    def drain_timers(self) -> dict[str, tuple[float, int]]:
        """Return the time of each part of `step` since the last call: part -> (seconds, steps). See `StepTimers`."""
        return self._timers.drain()

    def drain_metrics(self) -> dict[str, tuple[float, float]]:
        """Return the metrics of the pool and its components since the last call: name -> (sum, count).

        A contact over several steps counts as one touch. Minutes are game time: per car for touches, else per arena.
        """
        parts = (self.action_parser, self.reward, *self.loggers)
        metrics = added_metrics(part.drain_metrics() for part in parts)
        for name, (total, _) in metrics.items():
            if name.startswith("lane/") and name.endswith("_episodes"):  # two setters may have the same drill
                metrics[name] = (total, self.num_arenas)
        game = self._counts.drain(self.tick_skip, self.num_arenas, self.num_envs)
        return game | metrics | self._parameters.metrics()

    @property
    def parameters(self) -> dict[str, NDArray[np.float64]]:
        """Parameter -> `[A]` float64, its values in the current episodes; only those set by samplers or lessons."""
        return self._parameters.values

    def check_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """Raise a ValueError if a parameter is not in `envs.parameters.PARAMETERS`, or a value exceeds its limits."""
        self._parameters.check(values)

    def set_parameters(self, values: Mapping[str, float | Sequence[float]]) -> None:
        """Override the samplers of parameters, for episodes without a step so far and all later ones.

        `values` maps a parameter to a number, or to [min, max] to sample from; all others return to their own values.
        """
        self._parameters.override(values, self._started)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Tell a parser that looks ahead about the longest delay."""
        if self._parameters.delayed:
            self.action_parser.look_ahead(self.tick_skip, self.tick_skip)

    def check_phases(self, names: Sequence[str]) -> None:
        """Raise a ValueError unless the phased components have exactly the phases `names`."""
        for part in self._phased():
            part.check_phases(names)

    def set_phase(self, name: str, number: int) -> None:
        """Set the phase of the phased components from the next step on, see `envs.Phased`."""
        for part in self._phased():
            part.begin_phase(name, number, self.state)

    def _phased(self) -> list[Phased]:
        parts = (part for tree in (self.reward, self.state_setter) for part in tree.walk())
        return [part for part in parts if isinstance(part, Phased)]

    def continue_from(self, steps: int) -> None:
        """Continue annealed rewards as if this pool had made `steps` steps; `ProcessPool` calls it after a restart."""
        for part in self.reward.walk():
            if isinstance(part, AnnealedReward):
                part.continue_from(steps)

    def enable_teacher(self, enabled: bool) -> None:
        """Choose whether infos contain the teacher's actions; training without imitation disables them to save time."""
        self._teaches = enabled

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state of the pool, as numbers, arrays and dicts.

        This also restores the live arenas from the returned state, which lacks the contact caches of the physics
        engine, so that this pool continues exactly like one that loads the state. Raise a RuntimeError before the
        first `reset`, and a CannotBeSavedError if a component cannot be saved.
        """
        if not self._started:
            raise RuntimeError("RocketSimPool: call reset() before state_dict(); there is no game to save yet")
        components = self._components().values()
        snapshot = {
            "state": self.state.state_dict(),
            "arenas": [sim.snapshot() for sim in self._arenas.sims],
            "rngs": [dict(rng.bit_generator.state) for rng in self._episodes.rngs],
            "components": [part.state_dict() for part in components],
            "component_names": [type(part).__name__ for part in components],
            "counts": self._counts.state_dict(),
            "started": self._started,
            "parameters": self._parameters.state_dict(),
            "teacher": None if self.teacher is None else self.teacher.state_dict(),
        }
        self.load_state_dict(snapshot)
        return snapshot

    def load_state_dict(self, snapshot: dict[str, Any]) -> None:
        """Continue bit-identically to the pool that returned `snapshot`; raise a ValueError if components differ.

        Only the teacher may be missing in one of the two.
        """
        components = self._components()
        if self.teacher is not None and "teacher" not in snapshot:  # an older snapshot, where it was the last component
            components["teacher"] = self.teacher
        check_snapshot(snapshot, self.state, self._arenas.sims, components)
        self.state.load_state_dict(snapshot["state"])
        self._parameters.load_state_dict(snapshot["parameters"])
        self._look_ahead()
        for index, numbers in enumerate(snapshot["arenas"]):
            self._arenas.restore(index, numbers)
        for rng, saved in zip(self._episodes.rngs, snapshot["rngs"], strict=True):
            rng.bit_generator.state = saved
        load_components(components, snapshot)
        if self.teacher is not None and snapshot.get("teacher") is not None:
            load_child_state(self.teacher, snapshot["teacher"], "RocketSimPool: the saved state of the teacher")
        load_child_state(self._counts, snapshot["counts"], "RocketSimPool: the saved state of the counts")
        self._started = snapshot["started"]
        self.state.set_writable(False)

    def _components(self) -> dict[str, Any]:
        """Return all components by argument name."""
        first = {"state_setter": self.state_setter, "action": self.action_parser, "obs": self.obs_builder}
        dones = {f"done {number}": condition for number, condition in enumerate(self.done_conditions)}
        loggers = {f"logger {number}": logger for number, logger in enumerate(self.loggers)}
        guests = {f"guest {number}": bot for number, bot in enumerate(self.guests.bots)}
        return first | {"reward": self.reward} | dones | loggers | guests

    def _begin_episodes(self, mask: Bool) -> None:
        self._counts.physics_errors += self._episodes.begin(mask)
        parts = (self.action_parser, self.obs_builder, self.reward, *self.done_conditions, *self.loggers, self.guests)
        for part in (*parts, *filter(None, [self.teacher])):
            part.reset(mask, self.state)
        if mask[0]:
            self._videos.begin()

    def _infos(self) -> dict[str, Any]:
        mask = get_action_mask(self.action_parser, self.state)
        infos = {} if mask is None else {"action_mask": self._slots.cars_of(mask)}
        if self.teacher is not None and self._teaches:
            here, wanted = self.state.present, compute_controls(self.teacher, self.state)
            allowed = None if mask is None else mask[here]
            taught = nearest_actions(self.action_parser, wanted[here], self.state.on_ground[here], allowed)
            infos["teacher_action"] = taught
        return infos

    def _observe(self, state: GameState, first: bool = False) -> Float:
        """Build the observations `[A, C, ...]` of `state`; the `first` time, check that all columns are written."""
        obs = np.empty((state.num_arenas, self.num_cars, *(self.single_observation_space.shape or ())), np.float32)
        (build_obs_checked if first else build_obs)(self.obs_builder, state, obs)
        check_finite(type(self.obs_builder).__name__, "observations", obs, state.present, state.arena_index)
        return obs

    def _rewards(self) -> Float:
        state = self.state
        paid: Float = self.reward(state)
        check_finite(type(self.reward).__name__, "rewards", paid, state.present, state.arena_index)
        rewards = paid.astype(np.float32)  # a copy: a reward may return a buffer or a view of the state
        if self._arenas.broken.any():  # a broken arena still has the previous state, which was already rewarded
            rewards[self._arenas.broken] = 0
        return rewards

    def _reward_signals(self) -> dict[str, Any]:
        if not isinstance(self.reward, RewardSignals):
            return {}
        signals = np.where(self._arenas.broken[:, None, None], np.float32(0), self.reward.last)
        return {"reward_signals": self._slots.cars_of(signals)}

    def _check_dones(self) -> tuple[Bool, Bool]:
        """Return terminated and truncated episodes, `[A]` each; episodes of broken arenas are truncated."""
        broken = self._arenas.broken
        terminated, truncated = np.zeros(self.num_arenas, np.bool_), broken.copy()
        for condition in self.done_conditions:
            (truncated if condition.truncates else terminated)[:] |= check_done(condition, self.state)
        terminated[broken] = False
        return terminated, truncated

    def _show(self, done: Bool) -> None:
        """Show the step to loggers, videos and the viewer."""
        for logger in self.loggers:
            logger.update(self.state, done)
        self._videos.step()
        if self._viewer is not None:
            self._viewer.send(self.state)

    def _results(self, obs: Float, done: Bool) -> dict[str, Any]:
        """Return the infos about ending episodes, before the next ones begin."""
        arena_of = self._slots.arena_of
        scoring = self.state.scoring_team[arena_of]
        result = np.where(scoring < 0, 0.5, scoring == self._slots.team_of).astype(np.float32)
        return {"final_obs": self._slots.cars_of(obs.copy()), "_final_obs": done[arena_of], "result": result}


def bot_pool(
    num_arenas: int,
    team_size: int | tuple[int, int],
    state_setter: StateSetter,
    done: DoneCondition | Sequence[DoneCondition],
    tick_skip: int,
    action_delay_ticks: int,
    num_threads: int | None = 1,
    seed: int = 0,
    loggers: Sequence[StateLogger] = (),
) -> RocketSimPool:
    """Return a pool whose actions are the controls of bots, for `envs.pool.players.play`."""
    parts = None, ContinuousAction(), None, state_setter, done, tick_skip, action_delay_ticks
    return RocketSimPool(num_arenas, team_size, *parts, num_threads, seed, loggers=loggers)
