"""ConvPPOAgent: ML-Agents' encoders, all layouts of images, real rendered pixels."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import AddRenderObservation, FrameStackObservation, TransformObservation
from torch import nn

from agents.conv import ConvPPOAgent
from agents.parts.encoders import ResidualBlock, conv_layers
from fabric_rl.types import Minibatch

ACTIONS = gymnasium.spaces.Discrete(4)
IMAGE = Box(0, 255, (36, 40, 3), np.uint8)


def agent_with(space=IMAGE, actions=ACTIONS, seed=0, **settings):
    torch.manual_seed(seed)
    agent = ConvPPOAgent(space, actions, **({"hidden_sizes": (16,)} | settings))
    with torch.no_grad():  # a policy with opinions
        agent.policy_head.layer.weight *= 100
    return agent


def images(n=5, shape=(36, 40, 3), seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (n, *shape), dtype=torch.uint8, generator=generator)


# ---------------------------------------------------------------- encoders


def conv(size, kernel, stride, padding=0):
    """ML-Agents' conv_output_shape."""
    return (size + 2 * padding - (kernel - 1) - 1) // stride + 1


def pool(size):
    """ML-Agents' pool_out_shape with kernel 3."""
    return (size - 3) // 2 + 1


SIZES = {
    "simple": lambda size: conv(conv(size, 8, 4), 4, 2),
    "nature_cnn": lambda size: conv(conv(conv(size, 8, 4), 4, 2), 3, 1),
    "resnet": lambda size: pool(pool(pool(size))),
}
CHANNELS = {"simple": 32, "nature_cnn": 64, "resnet": 32}


@pytest.mark.parametrize("encoder", SIZES)
@pytest.mark.parametrize("size", [(36, 36), (84, 84), (50, 75), (97, 41)])
def test_output_sizes_are_those_of_ml_agents(encoder, size):
    agent = agent_with(Box(0, 255, (*size, 3), np.uint8), encoder=encoder)
    out = agent.encoder(agent.pixels(images(2, (*size, 3))))
    assert out.shape == (2, CHANNELS[encoder], SIZES[encoder](size[0]), SIZES[encoder](size[1]))
    assert agent.hidden[0].in_features == out[0].numel()
    assert (out >= 0).all() and out.any()


def test_a_known_size():
    """84 x 84 with nature_cnn is the paper's network: 3136 features."""
    assert agent_with(Box(0, 255, (4, 84, 84), np.uint8), encoder="nature_cnn").hidden[0].in_features == 3136


@pytest.mark.parametrize(
    ("encoder", "weights"),
    [
        ("simple", [(16, 3, 8, 8), (32, 16, 4, 4)]),
        ("nature_cnn", [(32, 3, 8, 8), (64, 32, 4, 4), (64, 64, 3, 3)]),
        (
            "resnet",
            [(16, 3, 3, 3), *[(16, 16, 3, 3)] * 4, (32, 16, 3, 3), *[(32, 32, 3, 3)] * 4, *[(32, 32, 3, 3)] * 5],
        ),
    ],
)
def test_kernels_and_channels(encoder, weights):
    convs = [layer for layer in conv_layers(encoder, 3, nn.ReLU, True).modules() if isinstance(layer, nn.Conv2d)]
    assert [tuple(layer.weight.shape) for layer in convs] == weights
    for layer in convs:
        rows = layer.weight.flatten(1)
        torch.testing.assert_close(rows @ rows.T, 2 * torch.eye(len(rows)), rtol=1e-4, atol=1e-4)
        assert not layer.bias.any()


@pytest.mark.parametrize(("encoder", "least"), [("simple", 20), ("nature_cnn", 36), ("resnet", 15)])
def test_the_smallest_image(encoder, least):
    agent = agent_with(Box(0, 255, (least, least + 1, 3), np.uint8), encoder=encoder)
    assert torch.isfinite(agent.value(images(2, (least, least + 1, 3)))).all()
    for shape in ((least - 1, 50, 3), (3, 50, least - 1)):
        message = (
            f"--agent.encoder {encoder} needs images of at least {least} pixels a side, but the environment's have"
        )
        with pytest.raises(ValueError, match=message) as caught:
            agent_with(Box(0, 255, shape, np.uint8), encoder=encoder)
        assert f"{least - 1}" in str(caught.value) and "\n" not in str(caught.value)


def test_too_small_an_image_names_the_encoders_that_would_do():
    with pytest.raises(
        ValueError, match=r"have 30 x 30 pixels; .* \(simple: at least 20, resnet: at least 15, match3: at least 5\)$"
    ):
        agent_with(Box(0, 255, (30, 30), np.uint8), encoder="nature_cnn")
    with pytest.raises(ValueError, match=r"choose larger images$"):
        agent_with(Box(0, 255, (4, 4), np.uint8))


def test_a_residual_block_adds():
    torch.manual_seed(0)
    block, x = ResidualBlock(3, nn.ReLU), torch.randn(2, 3, 6, 5)
    with torch.no_grad():
        for layer in (block.layers[1], block.layers[3]):
            layer.bias.zero_()
            layer.weight.zero_()
            layer.weight[:, :, 1, 1] = torch.eye(3)  # the identity
    torch.testing.assert_close(block(x), x + x.relu())


# ---------------------------------------------------------------- pixels


def test_pixels_go_from_their_bounds_to_one():
    obs = images()
    obs[0, 0, 0] = torch.tensor([0, 51, 255])
    scaled = agent_with().pixels(obs)
    assert scaled.dtype == torch.float32 and scaled.shape == (5, 3, 36, 40)
    assert scaled[0, :, 0, 0].tolist() == pytest.approx([0, 0.2, 1])
    for low, high in ((0.0, 1.0), (0.0, 255.0), (-1.0, 1.0)):
        same = obs.float() / 255 * (high - low) + low
        floats = agent_with(Box(low, high, IMAGE.shape, np.float32)).pixels(same)
        torch.testing.assert_close(floats, scaled, rtol=1e-5, atol=1e-6)
    unbounded = agent_with(Box(-np.inf, np.inf, IMAGE.shape, np.float32))
    assert torch.equal(unbounded.pixels(obs.float()), obs.float().permute(0, 3, 1, 2))


def test_memory_layout():
    """Convolutions run in channels_last, but not on one channel: DDP would warn of its gradients' strides."""
    for space, obs in ((IMAGE, images()), (Box(0, 255, (3, 36, 40), np.uint8), images(shape=(3, 36, 40)))):
        assert agent_with(space).pixels(obs).is_contiguous(memory_format=torch.channels_last)
    for shape in ((36, 40), (36, 40, 1), (1, 36, 40)):
        for obs in (images(shape=shape), images(shape=shape).float()):
            assert agent_with(Box(0, 255, shape, np.uint8)).pixels(obs).stride() == (36 * 40, 36 * 40, 40, 1)


@pytest.mark.parametrize(
    ("shape", "flag", "expected"),
    [
        ((36, 40), None, (1, 36, 40)),
        ((36, 40, 1), None, (1, 36, 40)),
        ((4, 36, 40), None, (4, 36, 40)),
        ((36, 40, 4), None, (4, 36, 40)),
        ((36, 40, 36), False, (36, 36, 40)),
        ((36, 40, 36), True, (36, 40, 36)),
        ((2, 36, 40, 3), None, (6, 36, 40)),
        ((2, 3, 36, 40), None, (6, 36, 40)),
    ],
)
def test_layouts(shape, flag, expected):
    agent = agent_with(Box(0, 255, shape, np.uint8), channels_first=flag)
    pixels = agent.pixels
    assert (pixels.channels, pixels.height, pixels.width) == expected
    obs = images(3, shape)
    got = (pixels(obs) * 255).round().to(torch.uint8)
    if len(shape) == 2:
        assert torch.equal(got[:, 0], obs)
    elif len(shape) == 3:
        first = expected[0] == shape[0] and flag is not False
        assert torch.equal(got, obs if first else obs.permute(0, 3, 1, 2))
    else:  # the frames stay apart: frame 1, colour 2
        assert torch.equal(got[:, 5], obs[:, 1, ..., 2] if shape[-1] == 3 else obs[:, 1, 2])


@pytest.mark.parametrize(
    ("space", "settings", "message"),
    [
        (Box(-1, 1, (70,)), {}, "ConvPPOAgent reads images .* has Box"),
        (Box(0, 255, (36, 36, 36), np.uint8), {}, r"cannot tell which axis of images of shape \(36, 36, 36\)"),
        (
            IMAGE,
            {"encoder": "alexnet"},
            "--agent.encoder must be one of simple, nature_cnn, resnet, match3, got 'alexnet'",
        ),
    ],
)
def test_what_cannot_work_is_refused(space, settings, message):
    with pytest.raises(ValueError, match=message) as caught:
        agent_with(space, **settings)
    assert "ConvPPOAgent" in str(caught.value) and "\n" not in str(caught.value)


# ---------------------------------------------------------------- a real environment


def rendered_cartpole():
    """CartPole as two frames of 50 x 75 colour pixels; a single one does not show velocities."""
    env = AddRenderObservation(gymnasium.make("CartPole-v1", render_mode="rgb_array"), render_only=True)
    assert env.observation_space.shape == (400, 600, 3)
    small = Box(0, 255, (50, 75, 3), np.uint8)
    return FrameStackObservation(TransformObservation(env, lambda pixels: pixels[4::8, 4::8], small), 2)


@pytest.mark.parametrize("encoder", SIZES)
def test_rendered_pixels_of_a_real_environment(encoder):
    envs = SyncVectorEnv([rendered_cartpole] * 2, autoreset_mode=AutoresetMode.SAME_STEP)
    agent = agent_with(envs.single_observation_space, envs.single_action_space, encoder=encoder)
    assert (agent.pixels.channels, agent.pixels.height, agent.pixels.width) == (6, 50, 75)
    obs, steps = torch.from_numpy(envs.reset(seed=0)[0]), []
    for _ in range(8):
        with torch.no_grad():
            acted = agent.act(obs)
        steps.append((obs, *acted[:3]))
        obs = torch.from_numpy(envs.step(acted.action.numpy())[0].copy())
    envs.close()
    seen, action, log_prob, value = (torch.cat(parts) for parts in zip(*steps, strict=True))
    assert seen.dtype == torch.uint8 and seen.shape == (16, 2, 50, 75, 3)
    assert value.std() > 0  # it sees the pole move
    loss, stats = agent.training_step(Minibatch(seen, action, log_prob, value, torch.randn(16), value + 1))
    loss.backward()
    assert stats["approx_kl"].abs() < 1e-5 and stats["value_loss"].item() == pytest.approx(0.5, rel=1e-3)
    assert all(torch.isfinite(p.grad).all() and p.grad.any() for p in agent.parameters())
