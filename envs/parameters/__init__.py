"""Parameters of the physics that change from episode to episode, and samplers for them."""

from envs.parameters.live import PARAMETERS as PARAMETERS
from envs.parameters.live import Parameter as Parameter
from envs.parameters.samplers import Constant as Constant
from envs.parameters.samplers import Gaussian as Gaussian
from envs.parameters.samplers import MultirangeUniform as MultirangeUniform
from envs.parameters.samplers import ParameterRandomizer as ParameterRandomizer
from envs.parameters.samplers import Sampler as Sampler
from envs.parameters.samplers import Uniform as Uniform
