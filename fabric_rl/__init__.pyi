"""What `fabric_rl` exports."""

from .analysis.comparison import Comparison as Comparison
from .analysis.comparison import compare as compare
from .analysis.plots import comparison_figure as comparison_figure
from .analysis.plots import learning_curves as learning_curves
from .args import Hardware as Hardware
from .args import SACArgs as SACArgs
from .args import Saving as Saving
from .args import StartArgs as StartArgs
from .args import TrainArgs as TrainArgs
from .callback import Callback as Callback
from .callback import TrainState as TrainState
from .callbacks.evaluation import Evaluation as Evaluation
from .callbacks.observers import History as History
from .curricula.lessons import Curriculum as Curriculum
from .curricula.lessons import Lessons as Lessons
from .curricula.phases import Phase as Phase
from .curricula.phases import Phases as Phases
from .curricula.phases import Promotion as Promotion
from .evaluation.play import play as play
from .evaluation.show import show as show
from .learning.gae import GAE as GAE
from .learning.gae import CounterfactualAdvantage as CounterfactualAdvantage
from .learning.gae import Estimator as Estimator
from .learning.gae import gae as gae
from .learning.ppo import ppo_loss as ppo_loss
from .learning.update import learn as learn
from .loop import train as train
from .roles.train import RoleTrainer as RoleTrainer
from .roles.train import train_roles as train_roles
from .rollouts.collect import EpisodeStats as EpisodeStats
from .rollouts.collect import collect as collect
from .rollouts.rollout import Rollout as Rollout
from .runs.checkpoint import load_checkpoint as load_checkpoint
from .runs.folder import Run as Run
from .runs.trained import Trained as Trained
from .runs.trained import load_trained as load_trained
from .sac.train import train_off_policy as train_off_policy
from .types import ActorCritic as ActorCritic
from .types import ActOutput as ActOutput
from .types import Minibatch as Minibatch
from .types import OffPolicyAgent as OffPolicyAgent
from .types import TeamAgent as TeamAgent
from .types import Transitions as Transitions

__version__: str
