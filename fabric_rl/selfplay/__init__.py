"""Self-play: opponents in a pool of games, which of them are there, and how good players are."""

from fabric_rl.selfplay.opponents import Opponents as Opponents
from fabric_rl.selfplay.roster import ByRating as ByRating
from fabric_rl.selfplay.roster import Eviction as Eviction
from fabric_rl.selfplay.roster import MostSimilar as MostSimilar
from fabric_rl.selfplay.roster import Newest as Newest
from fabric_rl.selfplay.roster import Oldest as Oldest
from fabric_rl.selfplay.roster import PFSPHard as PFSPHard
from fabric_rl.selfplay.roster import PFSPVariance as PFSPVariance
from fabric_rl.selfplay.roster import Sampling as Sampling
from fabric_rl.selfplay.roster import Uniform as Uniform
from fabric_rl.selfplay.roster import Weakest as Weakest
from fabric_rl.selfplay.self_play import SelfPlay as SelfPlay
