"""PacketPlayer, which plays from game packets like a policy in a pool, and its RLBot v5 bot.

This file needs numpy and rlbot, and is copied unchanged into the folder of an exported bot.
"""

import logging
import os
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rlbot import flat
from rlbot.managers import Bot

from envs.actions.base import ActionParser
from envs.adapters.rlbot_packets import (
    ACTIVE,
    KICKOFF,
    PAUSED,
    PacketReader,
    format_team_sizes,
    layout_mismatch,
    teams_of,
)
from envs.obs.base import ObsBuilder
from envs.state.layout import BLUE, Float

logger = logging.getLogger(__name__)

GAME_DELAY_TICKS = 1
"""The answer to a packet acts one tick late: RLGym's `rlbot_delay`, a pool's default delay."""
LOG = "FABRIC_RL_BOT_LOG"
"""Environment variable: path of the .npz file to which a bot writes its decisions when it ends."""


def instantiate(section: Any) -> Any:  # noqa: ANN401 - whatever a configuration may contain
    """Build `{class_path: module:name, init_args: {...}}`, also inside lists and mappings; keep all other values."""
    if isinstance(section, list):
        return [instantiate(each) for each in section]
    if not isinstance(section, dict):
        return section
    if "class_path" not in section:
        return {name: instantiate(each) for name, each in section.items()}
    return resolve_name(section["class_path"])(**instantiate(section.get("init_args", {})))


class PacketPlayer:
    """Player of one car that acts as in training: a decision every `tick_skip` ticks, applied after the same delay.

    Every kickoff begins an episode, with reset memory and observations. A decision that was due in a lost packet is
    made with the next packet; later decisions keep their schedule. While packets have an unexpected number of players
    or pads, or numbers that are not finite, the car does nothing; a warning is logged once.

    Attributes:
        teams: Teams of all players of the match; by default the teams in the first packet.
        decisions: Frame, observation, action, and controls of each decision, if `keep` is set.
    """

    def __init__(
        self,
        policy: Callable[..., NDArray[Any]],
        obs: ObsBuilder,
        action: ActionParser,
        tick_skip: int,
        action_delay_ticks: int,
        keep: bool = False,
    ) -> None:
        """Set up the player.

        Args:
            policy: `(obs [1, ...], begins [1], action_mask [1, n] or None) -> actions [1, ...]`.
            obs: Builds the observations.
            action: Parses the actions.
            tick_skip: Ticks per decision.
            action_delay_ticks: Ticks from an observation to the first tick that runs its decision; this includes
                `GAME_DELAY_TICKS`, the game's own delay.
            keep: Keep all decisions.
        """
        self._policy, self._obs, self._parser = policy, obs, action
        self._tick_skip, self._wait = tick_skip, max(0, action_delay_ticks - GAME_DELAY_TICKS)
        action.look_ahead(tick_skip, action_delay_ticks)
        self.decisions: list[tuple[Any, ...]] | None = [] if keep else None
        self.teams: list[int] | None = None
        self._reader: PacketReader | None = None
        self._complained = False
        self._due = self._begun = 0  # frames of the next decision and of the first one
        self._idle: Float = np.zeros(8, np.float32)
        self._acts = self._decided = self._idle
        self._acts_from = 0

    def controls(self, packet: Any, index: int, pads: Sequence[Any]) -> Float:  # noqa: ANN401
        """Return the controls `[8]` of car `index` after a `GamePacket`; `pads` are `FieldInfo.boost_pads`.

        The controls are throttle, steer, pitch, yaw, roll, jump, boost, handbrake.
        """
        phase, frame = int(packet.match_info.match_phase), packet.match_info.frame_num
        if phase not in (KICKOFF, ACTIVE) or not packet.balls:
            if phase != PAUSED:
                self._reader = None
            return self._idle
        self.teams = self.teams or teams_of(packet)
        if trouble := layout_mismatch(packet, self.teams, pads):
            if not self._complained:
                logger.warning("the game sends %s; the car does nothing until this stops", trouble)
            self._complained = True
            return self._idle
        reader = self._reader
        begins = reader is None or frame < reader.frame or reader.teams != teams_of(packet)
        if reader is None or begins:
            reader = self._reader = PacketReader(packet, pads)
            self._begun = self._due = frame
            self._acts = self._decided = self._idle
        else:
            reader.follow(packet)
        if frame >= self._acts_from:  # the decision before, if no packet came between the two
            self._acts = self._decided
        if frame >= self._due:
            self._decide(reader, packet, index, begins)
            self._acts_from = self._due + self._wait  # may be in the past after a late packet
            self._due = frame - (frame - self._begun) % self._tick_skip + self._tick_skip
        if frame >= self._acts_from:
            self._acts = self._decided
        return self._acts

    def _decide(self, reader: PacketReader, packet: Any, index: int, begins: bool) -> None:  # noqa: ANN401
        state, slot = reader.state(packet, None if begins else (index, self._decided)), int(reader.slots[index])
        if begins:
            for part in (self._parser, self._obs):
                part.reset(np.ones(1, np.bool_), state)
        seen = np.empty((1, state.num_cars, *self._obs.space(state.num_blue, state.num_orange).shape), np.float32)
        self._obs.build(state, seen)
        mask = self._parser.mask(state)
        chosen = self._policy(seen[:, slot], np.array([begins]), None if mask is None else mask[:, slot])
        actions = np.zeros((state.num_cars, *chosen.shape[1:]), chosen.dtype)
        actions[slot] = chosen[0]
        self._decided = self._parser.parse(actions, state).rows[slot].copy()
        if self.decisions is not None:
            self.decisions.append((reader.frame, seen[0, slot], chosen[0], self._decided))


class RLBotBot(Bot):
    """The bot that RLBot starts."""

    def __init__(self, player: PacketPlayer, agent_id: str, team_sizes: Sequence[Sequence[int]]) -> None:
        """Set the player, the `agent_id` of bot.toml, and the team sizes (blue, orange) used in training."""
        super().__init__(agent_id)
        self._player, self._known = player, {tuple(sorted(sizes)) for sizes in team_sizes}

    def initialize(self) -> None:
        """Raise a ValueError if the bot was not trained for the match's team sizes."""
        teams = [player.team for player in self.match_config.player_configurations]
        sizes = teams.count(BLUE), len(teams) - teams.count(BLUE)
        if tuple(sorted(sizes)) not in self._known:
            raise ValueError(
                f"{self.name} was trained for {format_team_sizes(self._known)}, but this match is {sizes[0]}v{sizes[1]}"
            )
        self._player.teams = teams

    def get_output(self, packet: flat.GamePacket) -> flat.ControllerState:
        row = self._player.controls(packet, self.index, self.field_info.boost_pads)
        return flat.ControllerState(*row[:5].tolist(), *(row[5:] > 0.5).tolist())

    def retire(self) -> None:
        """Write the decisions, if `LOG` is set."""
        if self._player.decisions:
            frame, obs, action, controls = map(np.array, zip(*self._player.decisions, strict=True))
            np.savez(os.environ[LOG], frame=frame, obs=obs, action=action, controls=controls)


def run(policy: Any, settings: dict[str, Any], check: bool) -> None:  # noqa: ANN401 - play.Policy of the folder
    """Play until the match ends.

    Args:
        policy: Policy of the exported folder.
        settings: Content of bot.json: `obs` and `action` for `instantiate`, `agent_id`.
        check: If True, only build everything and make one decision.
    """
    about = policy.about
    obs, action = instantiate(settings["obs"]), instantiate(settings["action"])
    player = PacketPlayer(policy, obs, action, about["tick_skip"], about["action_delay_ticks"], LOG in os.environ)
    if check:
        blue, orange = about["team_sizes"][0]
        shape = obs.space(blue, orange).shape
        chosen = policy(np.zeros((1, *shape), np.float32))
        print(f"{settings['agent_id']}: ready (observations {list(shape)}, action {chosen.tolist()})")
    else:
        RLBotBot(player, settings["agent_id"], about["team_sizes"]).run(
            wants_match_communications=False, wants_ball_predictions=False
        )
