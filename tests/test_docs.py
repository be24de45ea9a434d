"""What the code of the documentation computes; test_docs_blocks.py runs all of it."""

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from lightning import Fabric
from torch.distributions import Categorical, kl_divergence

from envs import GymnasiumEnvs
from fabric_rl import Callback, Minibatch, Run, Saving, TrainArgs, gae, load_checkpoint, train
from tests.docs_blocks import PAGES

pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[1]


def block(first_line, within=""):
    """Return the Python block of the pages that begins with that line and contains that text."""
    texts = [(ROOT / page).read_text(encoding="utf-8") for page in PAGES]
    found = [code for text in texts for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]
    found = [code for code in found if code.startswith(first_line) and within in code]
    assert len(found) == 1, (first_line, len(found))
    return found[0]


@pytest.fixture(scope="module")
def tiny_agent():
    names = {}
    exec(block("# my_agent.py"), names)
    return names["TinyAgent"]


def test_the_agent_of_the_docs_is_short_and_learns(tiny_agent, tmp_path):
    lines = block("# my_agent.py").splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 36  # imports included
    fabric = Fabric(accelerator="cpu", devices=1)
    run = Run.create(tmp_path, "docs")
    env = partial(GymnasiumEnvs, "CartPole-v1", 4)
    args = TrainArgs(total_timesteps=12_000, num_steps=256, minibatch_size=64)
    summary = train(fabric, env, tiny_agent, args, run, plain=True)
    assert summary["mean_return_last_20"] > 60  # a random policy gets 22
    path, state = load_checkpoint(run.dir)
    envs = env(seed=0)
    agent = tiny_agent(envs.single_observation_space, envs.single_action_space)
    agent.load_state_dict(state["agent"])
    assert path.name == "step_000000012288.ckpt"
    with torch.no_grad():
        assert agent.act(torch.zeros(3, 4), deterministic=True).action.shape == (3,)


def test_the_state_of_the_docs_is_paid_as_they_say(capsys):
    exec(block("import numpy as np", "concede=-5"), {})
    assert capsys.readouterr().out == "[[0.5 0. ]]\n[[10. -5.]]\n"


# ---------------------------------------------------------------- docs/research.md


def parts_of(first_line):
    names = {}
    exec(block(first_line), names)
    return names


class OneStepBehind:
    """An agent whose policy is `ratio` times as likely to do what it did."""

    def __init__(self, ratio):
        self.policy_head, self.log_ratio = self, torch.tensor(ratio).log()

    def evaluate(self, params, actions=None, mask=None):
        return (self.log_ratio.expand(len(params)), None) if actions is None else (params, None)


def rollout_of(reward, value, next_value, terminated, done):
    """One sub-environment."""
    columns = {"reward": reward, "value": value, "next_value": next_value}
    found = SimpleNamespace(**{name: torch.tensor(numbers)[:, None] for name, numbers in columns.items()})
    found.terminated, found.done = (torch.tensor(ends, dtype=torch.bool)[:, None] for ends in (terminated, done))
    found.obs, found.action = torch.zeros(len(reward) + 1, 1, 2), torch.zeros(len(reward), 1)
    found.log_prob, found.action_mask = torch.zeros(len(reward), 1), None
    return found


def test_vtrace_by_hand():
    """gamma 0.5, lambda 1; ratio 0.5 everywhere, so rho = c = 0.5. Step 1 is truncated, step 3 the last one."""
    rollout = rollout_of([1.0, 2.0, 3.0, 4.0], [1.0, 1, 1, 1], [1.0, 2, 1, 2], [0, 0, 0, 0], [0, 1, 0, 0])
    advantage, target = parts_of("# vtrace.py")["VTrace"]()(rollout, OneStepBehind(0.5), torch.tensor(0.5), 1.0)
    # delta: .5 (1 + .5 - 1) = .25; .5 (2 + 1 - 1) = 1; .5 (3 + .5 - 1) = 1.25; .5 (4 + 1 - 1) = 2
    # v - V: step 3: 2; step 2: 1.25 + .25 * 2 = 1.75; step 1 (cut): 1; step 0: .25 + .25 * 1 = .5
    assert target[:, 0].tolist() == [1.5, 2.0, 2.75, 3.0]
    # 1 + .5 (1 + 1) - 1; 2 + .5 * 2 - 1; 3 + .5 (1 + 2) - 1; 4 + .5 * 2 - 1
    assert advantage[:, 0].tolist() == [1.0, 2.0, 3.5, 4.0]


def test_vtrace_on_fresh_data_is_gae_with_its_value_targets():
    generator = torch.Generator().manual_seed(0)
    reward, value, next_value = torch.rand(3, 20, generator=generator).tolist()
    terminated, done = [i in (4, 15) for i in range(20)], [i in (4, 9, 15) for i in range(20)]
    rollout = rollout_of(reward, value, next_value, terminated, done)
    _, target = parts_of("# vtrace.py")["VTrace"]()(rollout, OneStepBehind(1.0), torch.tensor(0.9), 0.8)
    ends = (rollout.terminated, rollout.done)
    advantage = gae(rollout.reward, rollout.value, rollout.next_value, *ends, 0.9, 0.8)
    torch.testing.assert_close(target, advantage + rollout.value)


def test_vtrace_clips_what_has_become_likelier():
    rollout = rollout_of([1.0, 1.0], [0.0, 0.0], [0.0, 0.0], [0, 0], [0, 0])
    vtrace = parts_of("# vtrace.py")["VTrace"]
    for rho_bar, expected in ((1.0, 1.0), (2.0, 2.0), (9.0, 4.0)):
        _, target = vtrace(rho_bar=rho_bar)(rollout, OneStepBehind(4.0), torch.tensor(0.0), 1.0)
        assert target[:, 0].tolist() == pytest.approx([expected, expected])


def test_the_better_half_is_learned_from():
    batch = Minibatch(*(torch.arange(6.0) for _ in range(6)))._replace(advantage=torch.tensor([3.0, 1, 5, 2, 6, 4]))
    half = parts_of("# best_half.py")["BestHalf"]().on_learn_start(SimpleNamespace(batch=batch))
    assert half.obs.tolist() == [4, 2, 5]


def test_the_auxiliary_loss_of_ppg_is_that_of_the_paper():
    agent_class = parts_of("# ppg.py")["PPGAgent"]
    envs = GymnasiumEnvs("CartPole-v1", 1)
    agent = agent_class(envs.single_observation_space, envs.single_action_space, (8,), beta_clone=3.0)
    obs, returns = torch.randn(16, 4), torch.randn(16)
    old = torch.randn(16, 2).log_softmax(-1)
    params, values = agent.evaluate(obs)
    auxiliary = agent.auxiliary_head(agent.actor(obs))[:, 0]
    kl = kl_divergence(Categorical(logits=old), Categorical(logits=params)).mean()
    mse = torch.nn.functional.mse_loss
    expected = 0.5 * mse(auxiliary, returns) + 0.5 * mse(values, returns) + 3 * kl
    torch.testing.assert_close(agent.auxiliary_step(obs, returns, old), expected)


def test_ppg_trains_and_resumes(tmp_path):
    """Phases after iterations 2 and 4; a run resumed after 2 ends with the same weights."""
    names = parts_of("# ppg.py")
    fabric, env = Fabric(accelerator="cpu", devices=1), partial(GymnasiumEnvs, "CartPole-v1", 4)

    class Change(Callback):
        """How far the auxiliary head moves in each iteration: in the auxiliary phase only."""

        def __init__(self):
            self.moved = []

        def on_iteration_start(self, state):
            self.before = state.agent.auxiliary_head.weight.detach().clone()

        def on_iteration_end(self, state):
            self.moved.append(bool((state.agent.auxiliary_head.weight != self.before).any()))
            self.weights = [p.detach().clone() for p in state.agent.parameters()]

    def run(name, steps, resume=None):
        change, saving = Change(), Saving(checkpoint_every_timesteps=256, exact_resume=True)
        args = TrainArgs(
            total_timesteps=steps, num_steps=32, minibatch_size=64, lr_schedule="constant", update_epochs=1
        )
        callbacks = [names["AuxiliaryPhase"](every=2, epochs=2, minibatch_size=64), change]
        folder = Run(tmp_path / name) if resume else Run.create(tmp_path, name)
        train(fabric, env, names["PPGAgent"], args, folder, callbacks, plain=True, saving=saving, resume=resume)
        return change

    whole = run("whole", 4 * 128)
    assert whole.moved == [False, True, False, True]
    run("parts", 2 * 128)
    resumed = run("parts", 4 * 128, load_checkpoint(tmp_path / "parts")[1])
    assert all(torch.equal(a, b) for a, b in zip(whole.weights, resumed.weights, strict=True))
