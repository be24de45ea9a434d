"""RND, curiosity and GAIL beside the papers' equations, written out in float64 with NumPy, in real games."""

from contextlib import closing
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lightning import Fabric
from torch import nn

from agents import PPOLightningAgent
from envs import ContinuousAction, DefaultObs, LookupTable, RandomState, RocketSimPool, TimeoutCondition
from fabric_rl import Rollout, TrainArgs
from fabric_rl.rollouts.collect import collect
from fabric_rl.signals import GAIL, RND, Curiosity, Steps
from fabric_rl.signals.signals import IntrinsicRewards

ACTIONS = {"discrete": LookupTable, "continuous": ContinuousAction}
CLOSE = {"rel": 2e-5, "abs": 2e-5}


def layers(module):
    """Weights and biases of the linear layers, float64."""
    found = [part for part in module.modules() if isinstance(part, nn.Linear)]
    return [(part.weight.detach().double().numpy(), part.bias.detach().double().numpy()) for part in found]


def network(chain, x):
    """Outputs of linear layers with ELU between them, and the gradients of their sum by x."""
    slopes = []
    for number, (weight, bias) in enumerate(chain):
        x = x @ weight.T + bias
        if number < len(chain) - 1:
            slopes.append(np.where(x > 0, 1, np.exp(np.minimum(x, 0))))
            x = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))

    def backward(gradient):
        for (weight, _), slope in zip(chain[:0:-1], slopes[::-1], strict=True):
            gradient = (gradient @ weight) * slope
        return gradient @ chain[0][0]

    return x, backward


class Statistics:
    """Mean and deviation of all rows so far."""

    def __init__(self):
        self.rows = []

    def add(self, rows):
        self.rows.append(np.asarray(rows, np.float64))

    def normal(self, obs):
        if not self.rows:
            return np.clip(obs, -5, 5)
        seen = np.concatenate(self.rows)
        return np.clip((obs - seen.mean(axis=0)) / np.sqrt(seen.var(axis=0, ddof=1) + 1e-8), -5, 5)


def vectors(action, discrete):
    return np.eye(90)[action] if discrete else np.clip(np.asarray(action, np.float64), -1, 1)


def error(predicted, action, discrete):
    """The mean cross-entropy, or squared error, of predicted actions."""
    if not discrete:
        return ((predicted - vectors(action, False)) ** 2).mean()
    top = predicted.max(axis=1, keepdims=True)
    log_sum = top[:, 0] + np.log(np.exp(predicted - top).sum(axis=1))
    return (log_sum - predicted[np.arange(len(action)), action]).mean()


def rnd(signal, seen, steps):
    """Burda et al. 2018, sections 2.2 and 2.4: squared distances, and their mean."""
    x = seen.normal(steps.next_obs)
    distance = ((network(layers(signal.predictor), x)[0] - network(layers(signal.target), x)[0]) ** 2).sum(axis=1)
    return distance, distance.mean()


def curiosity(signal, seen, steps, discrete):
    """Pathak et al. 2017, equations 2 to 7, with beta = 0.2 and lambda = 0.1 as in ML-Agents."""
    before, after = (network(layers(signal.encoder), seen.normal(x))[0] for x in (steps.obs, steps.next_obs))
    inputs = np.concatenate((before, vectors(steps.action, discrete)), axis=1)
    paid = 0.5 * ((network(layers(signal.forward_model), inputs)[0] - after) ** 2).sum(axis=1)
    guess = network(layers(signal.inverse_model), np.concatenate((before, after), axis=1))[0]
    return paid, 10 * (0.2 * paid.mean() + 0.8 * error(guess, steps.action, discrete))


def discriminator(signal, x, action, noise=None):
    """Logits, KL divergences of the code, and the lengths of the logits' gradients, `[B]` each."""
    features, to_obs = network(layers(signal.encoder), x)
    seen, judge = np.concatenate((features, action), axis=1), layers(signal.judge)
    if signal.code is None:
        logit, back = network(judge, seen)
        gradient, kl = back(np.ones((len(x), 1))), np.zeros(len(x))
    else:
        ((weight, bias),) = layers(signal.code)
        mean, log_std = np.split(seen @ weight.T + bias, 2, axis=1)
        kl = (mean**2 / 2 + np.exp(2 * log_std) / 2 - log_std - 0.5).sum(axis=1)
        logit, back = network(judge, mean if noise is None else mean + np.exp(log_std) * noise)
        gradient = back(np.ones((len(x), 1))) @ weight[: mean.shape[1]]
    size = features.shape[1]
    slopes = np.concatenate((to_obs(gradient[:, :size]), gradient[:, size:]), axis=1)
    return logit[:, 0], kl, np.linalg.norm(slopes, axis=1)


def gail_reward(signal, seen, steps, discrete):
    """-log(1 - D), as ML-Agents has it, without its factor 1 - 1e-7 of D."""
    action = vectors(steps.action, discrete)[:, : signal.actions.size if signal.actions else 0]
    logit, _, _ = discriminator(signal, seen.normal(steps.obs), action)
    return np.logaddexp(0, logit)


def gail_loss(signal, seen, pair, discrete):
    """Ho & Ermon 2016, algorithm 1, with the penalty of Gulrajani et al. 2017 and the code of Peng et al. 2018."""
    obs = [seen.normal(x.double().numpy()) for x in pair.obs]
    width = signal.actions.size if signal.actions else 0
    action = [vectors(x.numpy(), discrete)[:, :width] for x in pair.action]
    noise = [None, None] if pair.noise is None else pair.noise.double().numpy()
    (agent, kl_1, _), (expert, kl_2, _) = (
        discriminator(signal, *each) for each in zip(obs, action, noise, strict=True)
    )
    share = pair.share.double().numpy()[:, None]
    between = (share * x[1] + (1 - share) * x[0] for x in (obs, action))
    slope = discriminator(signal, *between)[2]
    # -log D = log(1 + exp(-logit)), -log(1 - D) = log(1 + exp(logit)): sure answers keep their digits.
    loss = np.logaddexp(0, -expert).mean() + np.logaddexp(0, agent).mean() + 10 * ((slope - 1) ** 2).mean()
    kl = (kl_1.mean() + kl_2.mean()) / 2
    return loss + float(signal.beta) * (kl - 0.5), kl


def played(kind, rollouts=4):
    """Rollouts `[32, 16]` of random play, and the signals' owner; each rollout when it was collected."""
    torch.manual_seed(0)
    done = [TimeoutCondition(1.0)]
    with closing(
        RocketSimPool(
            8, 1, obs=DefaultObs(), action=ACTIONS[kind](), state_setter=RandomState(), done=done, num_threads=1
        )
    ) as pool:
        spaces = pool.single_observation_space, pool.single_action_space
        agent = PPOLightningAgent(*spaces, value_heads=6)
        signals = [RND(*spaces), RND(*spaces, normalize_steps=600), Curiosity(*spaces, strength=0.5, gamma=0.9)]
        signals += [GAIL(*spaces, use_actions=True), GAIL(*spaces, use_actions=True, use_vail=True)]
        for number, signal in enumerate(signals):
            signal.name = f"{signal.name}_{number}"
        rollout = Rollout(32, pool, agent=agent, signals=[signal.name for signal in signals])
        rollout.begin(*pool.reset(seed=5))
        with torch.no_grad():
            collect(pool, agent, rollout)
        obs, action = rollout.obs[:, 0].clone().numpy(), rollout.action[:, 0].clone().numpy()
        for gail in signals[3:]:
            gail.show([SimpleNamespace(obs=obs, action=action, weight=np.ones(32, np.float32))])
            for part in gail.judge.modules():  # decisive, as after long training
                if isinstance(part, nn.Linear):
                    part.weight.data *= 2
        fabric, args = Fabric(accelerator="cpu", devices=1), TrainArgs(total_timesteps=1, update_epochs=2)
        owner = IntrinsicRewards(signals, args, fabric, fabric, pool.num_envs)
        player = IntrinsicRewards(signals, args, fabric, fabric, pool.num_envs, learns=False)
        player.load_state_dict(owner.state_dict())  # a player has no state of its own
        for _ in range(rollouts):
            with torch.no_grad():
                collect(pool, agent, rollout)
            flat = (rollout.obs[:-1], rollout.action, rollout.next_obs)
            yield owner, rollout, Steps(*(x.flatten(0, 1).clone() for x in flat))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ACTIONS)
def test_rewards_and_losses_are_those_of_the_papers(kind, record_property):
    """Over rollouts between which everything learns: also the statistics of observations and of discounted rewards."""
    discrete, worst = kind == "discrete", {}
    seen, sums, running = {}, {}, {}

    def compare(name, found, expected):
        found, expected = np.asarray(found, np.float64), np.asarray(expected)
        apart = float((np.abs(found - expected) / (1 + np.abs(expected))).max())
        worst[name] = max(worst.get(name, 0), apart)
        assert found == pytest.approx(expected, **CLOSE), name

    for number, (owner, rollout, steps) in enumerate(played(kind)):
        plain = Steps(steps.obs.double().numpy(), steps.action.numpy(), steps.next_obs.double().numpy())
        owner.add_intrinsic_rewards(rollout)
        paid = rollout.reward[..., -len(owner.signals) :].double().numpy()
        for column, signal in enumerate(owner.signals):
            name = signal.name
            statistics = seen.setdefault(name, Statistics())
            if isinstance(signal, GAIL):
                raw = gail_reward(signal, statistics, plain, discrete)
            else:
                rule = rnd(signal, statistics, plain) if isinstance(signal, RND) else None
                raw, loss = rule or curiosity(signal, statistics, plain, discrete)
            if number == 0:
                assert (paid[..., column] == 0).all()
            else:
                if signal.scales:
                    each = raw.reshape(paid.shape[:2])
                    for row in each:  # R_t = r_t + gamma R_(t - 1), over all steps and rollouts
                        running[name] = running.get(name, 0) * signal.gamma + row
                        sums.setdefault(name, []).append(running[name])
                    raw = np.minimum(raw / np.concatenate(sums[name]).std(ddof=1), 10)
                compare(f"{name}: reward", paid[..., column].ravel(), signal.strength * raw)
            if isinstance(signal, GAIL):
                signal.beta.fill_(0.3 * number if signal.code else 0)
                pair = signal.prepared(steps, torch.Generator().manual_seed(number))
                loss, kl = gail_loss(signal, statistics, pair, discrete)
                found, stats = signal(pair)
                if signal.code:
                    compare(f"{name}: KL", stats["kl"], kl)
            else:
                found, _ = signal(steps)
            compare(f"{name}: loss", found.detach(), loss)
            if isinstance(signal, GAIL) and not statistics.rows:
                statistics.add(signal.shown[0])
            if not (isinstance(signal, RND) and signal.normalize_steps and sum(map(len, statistics.rows)) >= 600):
                statistics.add(plain.next_obs)
        owner.learn(rollout, 128)
    for name, apart in worst.items():
        record_property(name, apart)
