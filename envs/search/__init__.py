"""Search for action sequences that reach a goal, by many attempts in the simulator that a bot guides."""

from envs.search.goals import GOALS as GOALS
from envs.search.goals import FirstToBall as FirstToBall
from envs.search.goals import Goal as Goal
from envs.search.goals import Save as Save
from envs.search.goals import Score as Score
from envs.search.goals import TouchInAir as TouchInAir
from envs.search.search import Rules as Rules
from envs.search.search import SearchStart as SearchStart
from envs.search.search import Solution as Solution
from envs.search.search import replay as replay
from envs.search.search import search as search
