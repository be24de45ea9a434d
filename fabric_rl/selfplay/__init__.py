"""Self-play: opponents in a pool of games, which of them are there, and how good players are."""

from fabric_rl.selfplay.opponents import Opponents as Opponents
from fabric_rl.selfplay.sampling import ByRating as ByRating
from fabric_rl.selfplay.sampling import Eviction as Eviction
from fabric_rl.selfplay.sampling import MostSimilar as MostSimilar
from fabric_rl.selfplay.sampling import Newest as Newest
from fabric_rl.selfplay.sampling import Oldest as Oldest
from fabric_rl.selfplay.sampling import PFSPHard as PFSPHard
from fabric_rl.selfplay.sampling import PFSPVariance as PFSPVariance
from fabric_rl.selfplay.sampling import Sampling as Sampling
from fabric_rl.selfplay.sampling import Uniform as Uniform
from fabric_rl.selfplay.sampling import Weakest as Weakest
from fabric_rl.selfplay.self_play import SelfPlay as SelfPlay
