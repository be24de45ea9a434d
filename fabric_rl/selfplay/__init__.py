"""Self-play: opponents in a pool of games, the set of available opponents, and ratings of players."""

from fabric_rl.selfplay.opponent_pool import ByRating as ByRating
from fabric_rl.selfplay.opponent_pool import Eviction as Eviction
from fabric_rl.selfplay.opponent_pool import MostSimilar as MostSimilar
from fabric_rl.selfplay.opponent_pool import Newest as Newest
from fabric_rl.selfplay.opponent_pool import Oldest as Oldest
from fabric_rl.selfplay.opponent_pool import PFSPHard as PFSPHard
from fabric_rl.selfplay.opponent_pool import PFSPVariance as PFSPVariance
from fabric_rl.selfplay.opponent_pool import Sampling as Sampling
from fabric_rl.selfplay.opponent_pool import Uniform as Uniform
from fabric_rl.selfplay.opponent_pool import Weakest as Weakest
from fabric_rl.selfplay.opponents import Opponents as Opponents
from fabric_rl.selfplay.self_play import SelfPlay as SelfPlay
