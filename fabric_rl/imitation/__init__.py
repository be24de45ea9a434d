"""Learning from demonstrations and from other policies (docs/demonstrations.md)."""

from fabric_rl.imitation.cloning import Cloning as Cloning
from fabric_rl.imitation.kickstart import Kickstart as Kickstart
