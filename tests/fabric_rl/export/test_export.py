"""What an exported policy decides, beside the agent that it was."""

import hashlib
import json
import sys
from contextlib import closing
from functools import partial
from itertools import product

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.wrappers import FilterObservation, TransformObservation

import agents
import envs
from agents.parts.heads import PolicyHead
from fabric_rl.export.policy import PolicyGraph, write_policy
from fabric_rl.learning.normalize import ObsNormalizer
from fabric_rl.runs.play import Policy
from fabric_rl.runs.trained import ExportedAgent, load_policy, policy
from fabric_rl.types import ActorCritic, ActOutput, CheckpointError

VECTOR = Box(-3, 3, (6,), np.float32)
IMAGE = Box(0, 255, (20, 20, 3), np.uint8)
NORMALISED = {"normalize_obs": True, "clip_obs": 1.5}
AGENTS = {
    "ppo": ("PPOLightningAgent", VECTOR, NORMALISED),
    "ppo shared": ("PPOLightningAgent", VECTOR, {"shared_trunk": True, "layer_norm": True}),
    "lstm": ("RecurrentPPOAgent", VECTOR, {"memory_size": 8, "sequence_length": 4} | NORMALISED),
    "gru": ("RecurrentPPOAgent", VECTOR, {"memory_size": 8, "sequence_length": 4, "cell": "gru"}),
    "attention": ("AttentionPPOAgent", Box(-1, 1, (5, 8), np.float32), {"embed_size": 16, "num_heads": 2}),
    "conv": ("ConvPPOAgent", IMAGE, {"hidden_sizes": (16,)}),
    "conv frames": ("ConvPPOAgent", Box(0, 255, (2, 20, 20, 3), np.uint8), {"hidden_sizes": (16,)}),
    "sac memory": ("SACLightningAgent", VECTOR, {"memory_size": 8, "sequence_length": 4} | NORMALISED),
    "sac": ("SACLightningAgent", VECTOR, {"actor_hidden_sizes": (16,)} | NORMALISED),
}
SPACES = {
    "Discrete": (Discrete(5, start=1), {}),
    "MultiDiscrete": (MultiDiscrete([3, 5, 2], start=[0, 2, 0]), {}),
    "MultiBinary": (MultiBinary(4), {}),
    "Box": (Box(-0.5, 1, (3,)), {}),
    "squashed Box": (Box(-2, 3, (3,)), {"squash": True}),
    "state-dependent Box": (Box(-2, 3, (3,)), {"state_dependent_std": True}),
}


class Shown(VectorEnv):
    """Shows random observations and masks; every fifth step ends the episodes of half of its sub-environments."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012

    def __init__(self, observation_space, action_space, num_envs=8):
        self.single_observation_space, self.single_action_space = observation_space, action_space
        self.num_envs, self.steps = num_envs, 0
        self.rng = np.random.default_rng(0)
        discrete = {Discrete: 5, MultiDiscrete: 10, MultiBinary: 4}
        self.choices = discrete.get(type(action_space), 0)

    def look(self):
        space, shape = self.single_observation_space, (self.num_envs, *self.single_observation_space.shape)
        obs = self.rng.uniform(space.low.min(), space.high.max(), shape).astype(space.dtype)
        mask = self.rng.random((self.num_envs, self.choices)) < 0.7
        mask[:, ::3] = True
        return obs, {"action_mask": mask} if self.choices else {}

    def reset(self, *, seed=None, options=None):
        return self.look()

    def step(self, actions):
        self.steps += 1
        obs, infos = self.look()
        done = np.arange(self.num_envs) % 2 < (self.steps % 5 == 0)
        return obs, np.zeros(self.num_envs), done, np.zeros_like(done), infos


def built(name, space):
    kind, observation_space, settings = AGENTS[name]
    action_space, more = SPACES[space]
    torch.manual_seed(0)
    agent = getattr(agents, kind)(observation_space, action_space, **settings, **more)
    stir(agent, 0.5 + 2 * torch.randn(50, 6))
    return agent.eval(), Shown(observation_space, action_space)


@torch.no_grad()
def stir(agent, obs):
    """Makes decisions far from uniform, and gives normalizers their statistics."""
    for part in agent.modules():
        if isinstance(part, PolicyHead):
            part.layer.weight *= 30
        if isinstance(part, ObsNormalizer):
            part.update(obs)


def exists(name, space):
    return not (name.startswith("sac") and space in ("MultiBinary", "squashed Box", "state-dependent Box"))


def some_are_fast():
    """Every agent and every space, each with one of the formats; the other pairs are slow."""
    rows = []
    for (i, name), (j, space), (k, form) in product(
        enumerate(AGENTS), enumerate(SPACES), enumerate(("onnx", "torchscript"))
    ):
        fast = (i + 3 * k) % len(SPACES) == j and exists(name, space)
        rows += [pytest.param(name, space, form, marks=[] if fast else pytest.mark.slow)] * exists(name, space)
    return pytest.mark.parametrize(("name", "space", "form"), rows)


@some_are_fast()
def test_it_decides_and_draws_as_the_agent(name, space, form, tmp_path):
    agent, env = built(name, space)
    write_policy(agent, env, form, tmp_path, {"layout": {}}, steps=8)
    loaded = ExportedAgent(next(tmp_path.glob("policy.*")), agent.observation_space, agent.action_space)
    ours, theirs, rng = policy(agent), policy(loaded), np.random.default_rng(1)
    begins = np.ones(env.num_envs, bool)
    for _ in range(10):
        obs, infos = env.look()
        expected, found = (choose(obs, begins, infos.get("action_mask")) for choose in (ours, theirs))
        assert found.dtype == expected.dtype and found.shape == expected.shape
        assert (found == expected).all() if env.choices else found == pytest.approx(expected, abs=1e-5)
        begins = rng.random(env.num_envs) < 0.2

    obs, infos = env.look()
    many = {"obs": torch.from_numpy(obs[:1]).expand(4000, *obs.shape[1:]).contiguous()}
    if env.choices:
        many["action_mask"] = torch.from_numpy(infos["action_mask"][:1]).expand(4000, -1).contiguous()
    if agent.memory_size:
        many["state"] = torch.zeros(4000, agent.memory_size)
    drawn = [each.act(**many).action.double().reshape(4000, -1) for each in (agent, loaded)]
    for moment in (lambda x: x.mean(dim=0), lambda x: x.std(dim=0)):
        assert moment(drawn[0]).numpy() == pytest.approx(moment(drawn[1]).numpy(), abs=0.15)


def test_other_programs_run_it_with_another_batch_and_without_masks(tmp_path):
    agent, env = built("lstm", "Discrete")
    write_policy(agent, env, "onnx", tmp_path, {"layout": {}}, steps=8)
    alone = Policy(tmp_path)
    obs, _ = env.look()
    with torch.no_grad():
        first = agent.act(torch.from_numpy(obs[:3]), deterministic=True)
        second = agent.act(torch.from_numpy(obs[3:6]), first.state.index_fill(0, torch.tensor([1]), 0), True)
    assert (alone(obs[:3]) == first.action.numpy()).all()
    assert (alone(obs[3:6], begins=[False, True, False]) == second.action.numpy()).all()


def test_attention_takes_any_number_of_objects(tmp_path):
    agent, env = built("attention", "Discrete")
    write_policy(agent, env, "onnx", tmp_path, {"layout": {}}, free_axes=2, steps=8)
    for objects in (1, 9):
        space = Box(-1, 1, (objects, 8), np.float32)
        loaded = ExportedAgent(tmp_path / "policy.onnx", space, agent.action_space)
        obs = np.stack([space.sample() for _ in range(16)])
        assert (policy(loaded)(obs, np.ones(16, bool)) == policy(agent)(obs, np.ones(16, bool))).all()


class Foreign(ActorCritic):
    """An agent of one's own: a weight, no head."""

    def __init__(self, observation_space, action_space, learned=None):
        super().__init__(observation_space, action_space)
        self.layer = torch.nn.Linear(6, 3)
        self.calls = 0

    def act(self, obs, state=None, deterministic=False):
        return ActOutput(self.layer(obs), torch.zeros(len(obs)))


class Forgetful(Foreign):
    """Decides by what a trace cannot see."""

    def act(self, obs, state=None, deterministic=False):
        self.calls += 1
        return ActOutput(self.layer(obs) * self.calls, torch.zeros(len(obs)))


class Impossible(Foreign):
    """Leaves the tensors."""

    def act(self, obs, state=None, deterministic=False):
        return ActOutput(torch.linalg.eigvals(obs.T @ obs).abs()[:3].expand(len(obs), 3), torch.zeros(len(obs)))


def test_an_agent_of_ones_own_and_one_that_no_format_can_hold(tmp_path):
    spaces = VECTOR, Box(-10, 10, (3,))
    env = Shown(*spaces)
    write_policy(Foreign(*spaces).eval(), env, "onnx", tmp_path, {"layout": {}}, steps=4)
    loaded = ExportedAgent(tmp_path / "policy.onnx", *spaces)
    assert json.loads((tmp_path / "metadata.json").read_text())["outputs"] == ["action"]
    with pytest.raises(ValueError, match="returns only its likeliest actions"):
        policy(loaded, deterministic=False)(env.look()[0], np.ones(8, bool))
    with pytest.raises(ValueError, match="--format onnx cannot represent Forgetful: the exported action differs"):
        write_policy(Forgetful(*spaces).eval(), env, "onnx", tmp_path, {}, steps=4)
    with pytest.raises(ValueError, match="--format onnx cannot represent Impossible: ") as no:
        write_policy(Impossible(*spaces).eval(), env, "onnx", tmp_path, {}, steps=4)
    assert "\n" not in str(no.value)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    agent, env = built("ppo", "Discrete")
    write_policy(agent, env, "onnx", folder, {"layout": {"actions": {"table": [[1.0]]}}}, steps=8)
    return folder


def spoilt(exported, folder, **about):
    """A copy with another metadata.json."""
    (folder / "policy.onnx").write_bytes((exported / "policy.onnx").read_bytes())
    known = json.loads((exported / "metadata.json").read_text()) | about
    (folder / "metadata.json").write_text(json.dumps({k: v for k, v in known.items() if v is not None}))
    return folder / "policy.onnx"


def refused(model, observation_space=VECTOR, action_space=SPACES["Discrete"][0]):
    with pytest.raises(CheckpointError) as no:
        ExportedAgent(model, observation_space, action_space)
    assert str(model) in str(no.value) and "\n" not in str(no.value)
    return str(no.value)


def test_files_that_are_no_policies_are_one_line(exported, tmp_path):
    model = spoilt(exported, tmp_path)
    assert "needs observations [6] and actions Discrete(5, start=1), but got [7]" in refused(model, Box(-1, 1, (7,)))
    assert "but got [6] and Discrete(4)" in refused(model, action_space=Discrete(4))
    model.write_bytes(model.read_bytes()[:-9])
    assert "is damaged: its checksum is not the one in metadata.json" in refused(model)
    model = spoilt(exported, tmp_path, sha256=hashlib.sha256(b"nonsense").hexdigest())
    model.write_bytes(b"nonsense")
    assert "cannot be loaded: " in refused(model)
    disguised = refused(spoilt(exported, tmp_path, format="torchscript"))  # torch would run policy.onnx
    assert disguised.endswith("belongs to 'policy.onnx' (torchscript), not to this model")
    other = tmp_path.parent / "other.onnx"
    assert "onnx' (onnx), not to this model" in refused(spoilt(exported, tmp_path, model=str(other)))
    for lacks in ("sha256", "inputs", "memory_size", "model", "squash", "layout", "format"):
        assert "was not written by fabric-rl export" in refused(spoilt(exported, tmp_path, **{lacks: None}))
    for wrong in ({"memory_size": 10**9}, {"memory_size": -1}, {"memory_size": 0.5}, {"format": []}, {"versions": 1}):
        assert "was not written by fabric-rl export" in refused(spoilt(exported, tmp_path, **wrong))
    (tmp_path / "metadata.json").unlink()
    assert "was not written by fabric-rl export" in refused(model)


class Beyond(Foreign):
    """Chooses the action after the last one."""

    def act(self, obs, state=None, deterministic=False):
        return ActOutput(torch.argmax(obs.abs(), dim=1) * 0 + 6, torch.zeros(len(obs)))


def test_a_forged_policy_ends_in_one_line_when_it_plays(exported, tmp_path):
    inputs = json.loads((exported / "metadata.json").read_text())["inputs"]
    for wrong in (
        {"memory_size": 3},
        {"outputs": ["action", "x"]},
        {"outputs": "a"},
        {"inputs": {"obs": inputs["obs"]}},
    ):
        agent = ExportedAgent(spoilt(exported, tmp_path, **wrong), VECTOR, SPACES["Discrete"][0])
        if "memory_size" in wrong:
            assert policy(agent)(np.zeros((2, 6), np.float32), np.ones(2, bool)).shape == (2,)  # it has no such input
            continue
        with pytest.raises(ValueError, match=r"policy\.onnx cannot be played: ") as no:
            policy(agent)(np.zeros((2, 6), np.float32), np.ones(2, bool))
        assert "\n" not in str(no.value)
    spaces = VECTOR, Discrete(6)
    write_policy(Beyond(*spaces).eval(), Shown(*spaces), "onnx", tmp_path, {"layout": {}}, steps=4)
    with pytest.raises(
        ValueError, match=r"policy\.onnx cannot be played: it chose an action that is not in Discrete\(6\)"
    ):
        policy(ExportedAgent(tmp_path / "policy.onnx", *spaces))(np.zeros((2, 6), np.float32), np.ones(2, bool))


def test_another_table_or_other_columns_are_refused(exported):
    agent = ExportedAgent(exported / "policy.onnx", VECTOR, SPACES["Discrete"][0])
    agent.check_layout({"actions": {"table": [[1.0]]}, "observations": {}})
    with pytest.raises(CheckpointError, match=r"policy.onnx: the actions in metadata.json differ from those that"):
        agent.check_layout({"actions": {"table": [[0.5]]}})


def test_without_onnxruntime_it_says_what_to_install(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"policy.onnx needs onnxruntime; pip install onnxruntime"):
        ExportedAgent(exported / "policy.onnx", VECTOR, SPACES["Discrete"][0])


def test_wrong_arguments_are_one_line(exported):
    space, actions = VECTOR, SPACES["Discrete"][0]
    assert ExportedAgent(str(exported), space, actions).model == exported / "policy.onnx"
    for wrong, message in (
        ((exported, None, actions), "observation_space must be a gymnasium.Space, got NoneType"),
        ((exported, space, 5), "action_space must be a gymnasium.Space, got int"),
    ):
        with pytest.raises(TypeError, match=f"^ExportedAgent: {message}$"):
            ExportedAgent(*wrong)


def test_probabilities_are_those_of_the_agent(tmp_path):
    agent = agents.PPOLightningAgent(VECTOR, Discrete(5))
    env = Shown(VECTOR, Discrete(5))
    write_policy(agent.eval(), env, "onnx", tmp_path, {"layout": {}}, steps=4)
    loaded = ExportedAgent(tmp_path / "policy.onnx", VECTOR, Discrete(5))
    obs, infos = env.look()
    given = torch.from_numpy(obs), None, torch.from_numpy(infos["action_mask"])
    assert loaded.probabilities(*given).numpy() == pytest.approx(agent.probabilities(*given).detach().numpy(), abs=1e-6)
    assert loaded.value(given[0]).isnan().all()


def pool(obs, action=None):
    """2v2 from random states and kickoffs."""
    done = [envs.GoalCondition(), envs.TimeoutCondition(20)]
    setter = envs.MixedStates([envs.RandomState(), envs.Kickoff()], [0.8, 0.2])
    action = action or envs.HybridTable()
    return envs.RocketSimPool(16, 2, obs=obs, action=action, state_setter=setter, done=done, num_threads=1)


def grid(wrapper):
    pytest.importorskip("minigrid")
    return envs.GymnasiumEnvs("MiniGrid-DoorKey-6x6-v0", 16, wrappers=[wrapper])


def image_and_direction(env):
    return FilterObservation(env, filter_keys=["image", "direction"])


def only_image(env):
    return TransformObservation(env, lambda obs: obs["image"], env.observation_space["image"])


PPO = agents.PPOLightningAgent
ROLES = {"roles": {"blue": PPO, "orange": partial(PPO, layer_norm=True)}}
ARCHITECTURES = {
    "MLP with masks": (PPO, lambda: pool(envs.AdvancedObs()), NORMALISED),
    "MLP, continuous": (PPO, lambda: pool(envs.DefaultObs(), envs.ContinuousAction()), {"state_dependent_std": True}),
    "LSTM": (agents.RecurrentPPOAgent, lambda: pool(envs.AdvancedObs()), NORMALISED),
    "GRU": (agents.RecurrentPPOAgent, lambda: pool(envs.AdvancedObs()), {"cell": "gru"}),
    "attention": (agents.AttentionPPOAgent, lambda: pool(envs.EntityObs()), {}),
    "convolutions": (agents.ConvPPOAgent, lambda: grid(only_image), {"encoder": "match3"}),
    "several inputs": (agents.MultiInputPPOAgent, lambda: grid(image_and_direction), {"encoder": "match3"}),
    "role": (agents.RolesAgent, lambda: pool(envs.TeamRoleObs(envs.DefaultObs())), ROLES),
    "SAC": (agents.SACLightningAgent, lambda: pool(envs.AdvancedObs(), envs.ContinuousAction()), NORMALISED),
    "SAC, discrete, memory": (agents.SACLightningAgent, lambda: pool(envs.AdvancedObs()), {"memory_size": 32}),
}


def real_observations(env, count):
    """What random play shows."""
    obs, rows = env.reset(seed=3)[0], []
    env.single_action_space.seed(3)
    while len(rows) * env.num_envs < count:
        rows.append(obs.copy())
        obs = env.step(np.stack([env.single_action_space.sample() for _ in range(env.num_envs)]))[0]
    return np.concatenate(rows)[:count]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_all_numbers_are_those_of_torch_in_ten_thousand_real_and_random_states(name, tmp_path, record_property):
    """Also with random memories and masks; docs/reproducibility.md has the largest differences."""
    kind, make, settings = ARCHITECTURES[name]
    with closing(make()) as env:
        space, rng = env.single_observation_space, np.random.default_rng(0)
        real = real_observations(env, 10_000)
        torch.manual_seed(0)
        agent, columns = kind(space, env.single_action_space, **settings).eval(), None
        if name == "role":
            agent, columns = agent.agents[1], -1
        stir(agent, torch.from_numpy(real[:2000]))
        write_policy(agent, env, "onnx", tmp_path, {"layout": {}}, columns, 2 if name == "attention" else 1, steps=8)
    exported = load_policy(tmp_path)
    graph = PolicyGraph(agent, "action_mask" in exported.about["inputs"], columns)
    low, high = np.maximum(space.low, -5), np.minimum(space.high, 255 if space.dtype == np.uint8 else 5)
    random = rng.uniform(low, high, real.shape).astype(real.dtype)
    for source, rows in (("real", real), ("random", random)):
        given = {"obs": rows, "state": rng.normal(size=(len(rows), agent.memory_size)).astype(np.float32)}
        if "action_mask" in graph.inputs:
            given["action_mask"] = rng.random((len(rows), exported.about["inputs"]["action_mask"]["shape"][1])) < 0.7
            given["action_mask"][:, 0] = True
        found = exported.run(given)
        expected = graph(*(torch.from_numpy(given[each]) for each in graph.inputs))
        for output, each in zip(graph.outputs, expected, strict=True):
            ours, theirs = each.double().numpy(), found[output].astype(np.float64)
            if output == "action" and "probabilities" in graph.outputs:
                two = np.sort(found["probabilities"].reshape(len(rows), -1), axis=-1)[:, -2:]
                clear = two[:, 1] - two[:, 0] > 1e-5  # else rounding decides which of two equal ones is the largest
                assert (ours == theirs)[clear].all() and clear.mean() > 0.9
                continue
            record_property(f"{source}/{output}", float(np.abs(ours - theirs).max()))
            assert (np.abs(ours - theirs) <= 2e-5 * np.maximum(1, np.abs(ours))).all(), output
