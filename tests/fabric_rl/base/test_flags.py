"""The command line: its help, notes and words, presets by their names, and nothing that makes its reader crash."""

import contextlib
import inspect
import io
import re
from contextlib import redirect_stdout
from functools import partial

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from jsonargparse import ArgumentError

import train_fabric
from agents import RecurrentPPOAgent
from envs import GymnasiumEnvs
from fabric_rl.base.argv import (
    DEFAULT_CONFIG,
    PRESETS,
    complete_help_flags,
    flag_names,
    last_flag_value,
    normalize_flags,
    preset_names,
    remove_flags,
    resolve_preset,
)
from fabric_rl.base.config_files import read_sections
from fabric_rl.base.foreign_names import foreign_names
from fabric_rl.base.messages import one_line
from fabric_rl.base.parser import FlagParser
from fabric_rl.base.text import did_you_mean
from fabric_rl.cli.command_line import read_settings
from fabric_rl.commands import main as commands
from fabric_rl.evaluation.demonstrations import trajectories_of


@pytest.fixture
def output(capsys):
    """What the command line prints for arguments that do not train."""

    def call(*arguments):
        with pytest.raises(SystemExit):
            train_fabric.cli([str(argument) for argument in arguments])
        return capsys.readouterr()

    return call


def entries(text):
    """Flag -> its help in one line, without type and default."""
    blocks = re.findall(r"^  (--[\w.]+)(.*?)(?=^  -|^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    return {flag: " ".join(rest.split()) for flag, rest in blocks}


@pytest.mark.parametrize("arguments", [["--help"], ["--agent.help"], ["--env.help"]])
def test_every_flag_has_a_sentence(output, arguments):
    found = entries(output(*arguments).out)
    assert len(found) > 10
    assert [flag for flag, text in found.items() if not re.search(r"\.(?: \(type|$)", text)] == []


def test_help_is_short_and_names_no_python_types(output):
    text = output("--help").out
    assert "<class" not in text
    assert "Args:" not in text
    assert "type: EnvFactory, default: envs.RocketSimPool" in " ".join(text.split())
    words = text.replace(",", " ").replace(".", " ").split()
    assert {"cartpole", "rocket_1v1_quickstart", "two_policies"} <= set(words)  # the presets
    text = output("--agent.help").out  # jsonargparse would list hundreds of subclasses of torch.nn.Module
    assert text.count("\n") < 113
    assert "for example torch.nn.ReLU. (type: type[Module], default: torch.nn.Tanh)" in " ".join(text.split())


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["--agent.help"], "--agent.critic_hidden_sizes"),
        (["--agent", "agents.ConvPPOAgent", "--agent.help"], "--agent.encoder"),
        (["--env.help"], "--env.num_arenas"),
        (["--env.help", "envs.GymnasiumEnvs"], "--env.env_id"),
    ],
)
def test_help_without_a_class_explains_the_chosen_one(output, arguments, flag):
    assert flag in entries(output(*arguments).out)


@pytest.mark.slow
def test_an_env_that_has_no_effect_is_noted(output, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text("env: {class_path: envs.RocketSimPool, init_args: {num_arenas: 2}}\n")
    elsewhere = ["--env_id", "CartPole-v1", "--runs_dir", tmp_path, "--resume", "nowhere"]  # which ends it
    note = f"note: --env_id CartPole-v1 replaces the env in {file}, which has no effect\n"
    assert output("--config", file, *elsewhere).out == note
    file.write_text("num_steps: 8\n")
    assert output("--config", file, *elsewhere).out == ""
    assert output("--config", train_fabric.DEFAULT_CONFIG, *elsewhere).out == ""


class Part:
    """Has settings of several types."""

    def __init__(self, size: int | float = 1, count: int | None = None, parts: "Part | list[Part] | None" = None):
        self.size, self.count, self.parts = size, count, parts


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--part.size=x"], "--part.size: expected a whole number or a number, got x"),
        (["--part.count=x"], "--part.count: expected a whole number, got x"),
        (["--part.parts.count=x"], "--part.parts.count: expected a whole number, got x"),
        (
            ["--part.parts={PART}", "--part.parts.counts=1"],
            "--part.parts.counts: Part has no such setting; did you mean count?",
        ),
    ],
)
def test_a_setting_of_several_types_says_what_helps(flags, line):
    """What jsonargparse itself says is a list of what each type would have wanted."""
    parser = FlagParser(exit_on_error=False)
    parser.add_argument("--part", type=Part)
    path = f"{Part.__module__}.Part"
    with pytest.raises(ArgumentError) as raised:
        parser.parse_args([f"--part={path}", *(flag.replace("{PART}", path) for flag in flags)])
    assert one_line(str(raised.value)) == line


def test_a_list_of_one_says_how_to_write_it(output):
    told = "--{0}: expected a list, got {1}; write '[{1}]', or --{0}+={1} to append it\n"
    rnd, cloning = "fabric_rl.signals.RND", ("--cloning", "Cloning")
    assert output("--signals", rnd).err.endswith(told.format("signals", rnd))
    assert output(*cloning, "--cloning.demos", "x.frd").err.endswith(told.format("cloning.demos", "x.frd"))
    for signals, demos in (
        (("--signals", f"[{rnd}]"), ("--cloning.demos", "[x.frd]")),
        ((f"--signals+={rnd}",), ("--cloning.demos+=x.frd",)),
    ):
        printed = yaml.safe_load(output(*signals, *cloning, *demos, "--print_config").out)
        assert [each["class_path"] for each in printed["signals"]] == [rnd]
        assert printed["cloning"]["init_args"]["demos"] == ["x.frd"]


NEEDS_ANOTHER = "import no_such_package\n\nclass Part:\n    pass\n"


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--agent.activation=nope"], "--agent.activation: expected the path of a class, such as package.module.Class"),
        (["--agent.activation=builtins.int"], "--agent.activation: expected the path of a subclass of Module, got"),
        (["--callbacks.help"], "--callbacks.help needs a class to explain: its path, or a name that"),
        (["--agent.help", "nope.Nope"], "--agent.help: there is no module nope; if it is your own, add its folder"),
        (["--env.reward=envs.touchreward"], "--env.reward: there is no class envs.touchreward; did you mean TouchRew"),
        (["--callbacks=fabric_rl.Histroy"], "--callbacks: there is no class fabric_rl.Histroy; did you mean History?"),
        (["--logger=needs_another.Part"], "--logger: needs_another.Part needs the package no_such_package, which is"),
    ],
)
def test_a_class_that_is_none_says_what_helps(output, tmp_path, monkeypatch, flags, line):
    (tmp_path / "needs_another.py").write_text(NEEDS_ANOTHER)
    monkeypatch.syspath_prepend(tmp_path)
    err = output(*flags).err
    assert err.startswith(f"train_fabric.py: error: {line}") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "value"),
    [
        (["--seed", "1", "--agent", "A"], "A"),
        (["--agent=A"], "A"),
        (["--agent", "A", "--agent=B"], "B"),  # the last one, as everywhere on the command line
        (["--agent=A", "--seed=1", "--agent", "B"], "B"),
        (["--agent", "A", "--agent"], None),
        (["--agent.help", "A"], None),
    ],
)
def test_the_last_of_equal_flags_counts(flags, value):
    assert last_flag_value(flags, "--agent") == value
    explained = complete_help_flags([*flags, "--agent.help"], {"--agent": "Usual"})
    assert explained[-1] == f"--agent.help={value or 'Usual'}"


@pytest.mark.parametrize(
    "words",
    [
        ["--agent", "agents.RecurrentPPOAgent"],
        ["--env_id", "CartPole-v1", "--agent", "agents.RecurrentPPOAgent"],
        ["--config={config}"],
        ["--config", "{config}", "--agent.cell", "lstm"],
    ],
)
def test_an_agent_that_is_chosen_begins_with_its_own_settings(output, tmp_path, words):
    """Not with those of the preset's agent, nor of the default class, that it happens to have, too."""
    config = tmp_path / "own.yaml"
    config.write_text("agent: agents.RecurrentPPOAgent\n")
    parameters = inspect.signature(RecurrentPPOAgent).parameters
    printed = yaml.safe_load(output(*(word.format(config=config) for word in words), "--print_config").out)["agent"]
    assert printed["class_path"] == "agents.RecurrentPPOAgent"
    for name, value in printed["init_args"].items():
        default = parameters[name].default
        assert value in (list(default) if isinstance(default, tuple) else default, "torch.nn.Tanh"), name


def test_settings_that_were_given_stay_when_another_agent_is_chosen(output, tmp_path):
    (tmp_path / "own.yaml").write_text("agent: {class_path: agents.PPOLightningAgent, init_args: {actor_lr: 0.5}}\n")
    flags = ["--config", tmp_path / "own.yaml", "--agent", "agents.RecurrentPPOAgent", "--agent.critic_lr", "0.25"]
    printed = yaml.safe_load(output(*flags, "--print_config").out)["agent"]["init_args"]
    assert (printed["actor_lr"], printed["critic_lr"]) == (0.5, 0.25)
    printed = yaml.safe_load(output("--agent", "agents.PPOLightningAgent", "--print_config").out)["agent"]["init_args"]
    assert printed["actor_hidden_sizes"] == [256, 256, 256]  # the preset is of that agent


def test_a_kickstart_goes_into_the_settings_of_a_run_and_comes_back(output, tmp_path):
    config = tmp_path / "kept.yaml"
    config.write_text(output("--kickstart", "Kickstart", "--kickstart.reference", "x", "--print_config").out)
    again = output("--config", config, "--print_config")
    assert yaml.safe_load(again.out)["kickstart"]["init_args"] == {"reference": "x", "coef": None}
    assert "serialize" not in again.err


def test_a_setting_whose_default_is_an_object_is_written_as_its_class(output):
    printed = yaml.safe_load(output("--self_play", "SelfPlay", "--print_config").out)["self_play"]["init_args"]
    assert printed["sampling"] == {"class_path": "fabric_rl.selfplay.Uniform"}
    assert printed["eviction"] == {"class_path": "fabric_rl.selfplay.Oldest"}


def test_a_flag_that_holds_itself_is_one_line(output):
    error = output("--agent.actor_hidden_sizes", "&a [*a]").err
    assert error == "train_fabric.py: error: --agent.actor_hidden_sizes: nested too deeply, or contains itself\n"


def test_an_agent_that_learns_with_sac_leaves_the_presets_settings_of_ppo(output):
    printed = yaml.safe_load(output("--agent", "agents.SACLightningAgent", "--print_config").out)
    assert printed["num_steps"] == 128 and printed["minibatch_size"] is None and printed["update_epochs"] == 10
    assert printed["env"]["init_args"]["num_arenas"] == 64 and printed["total_timesteps"] == 2_000_000


@pytest.fixture(scope="module")
def known_flags():
    """All flags, and the settings of the preset's environment, of agents, signals and other parts."""
    found = set()
    parts = ["--agent.help", "--env.help", "--self_play.help=fabric_rl.selfplay.SelfPlay"]
    parts += [f"--agent.help=agents.{name}Agent" for name in ("SACLightning", "RecurrentPPO", "ConvPPO")]
    parts += ["--cloning.help=fabric_rl.imitation.Cloning", "--callbacks.help=fabric_rl.Phases"]
    parts += [f"--signals.help=fabric_rl.signals.{name}" for name in ("Curiosity", "RND", "GAIL")]
    parts += ["--callbacks.help=fabric_rl.Lessons", "--env.help=envs.RLGymPool"]
    for arguments in (["--help"], *([part] for part in parts)):
        with pytest.raises(SystemExit), redirect_stdout(io.StringIO()) as text:
            train_fabric.cli(arguments)
        found |= entries(text.getvalue()).keys()
    return found


def test_hints_for_names_of_other_trainers_name_flags_that_exist(known_flags):
    named = {flag for hint in foreign_names().values() for flag in re.findall(r"--[\w.]+", hint)}
    assert len(named) > 60
    of_commands = {"--behavior", "--demos"}  # of fabric-rl import
    assert named - known_flags - of_commands == {"--env.state_setter.mechanics_weight"}  # of a part of a part


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (["--critic-lr", 1e-4], "--critic_lr: no such setting; use --agent.critic_lr\n"),
        (["--agent.beta", 0.1], "--agent.beta: PPOLightningAgent has no such setting; use --agent.entropy_coef\n"),
        (["--env.n_envs", 3], "--env.n_envs: RocketSimPool has no such setting; use --env.num_arenas (in threads), or"),
        (["--env.beta", 0.1], "--env.beta: RocketSimPool has no such setting; known: num_arenas, "),
    ],
)
def test_a_name_of_another_trainer_gets_the_one_here(output, flags, line):
    err = output(*flags).err
    assert err.startswith(f"train_fabric.py: error: {line}") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\npolicy_lr: 3\n", "--policy_lr: no such setting; use --agent.actor_lr ({}, line 2)"),
        ("num_steps: x\n", "--num_steps: expected a whole number, got x ({}, line 1)"),
        ("seed: 1\n\nnum_steps: 0\n", "--num_steps must be a whole number of at least 1, got 0 ({}, line 3)"),
        ("agent:\n  actor_lr: x\n", "--agent.actor_lr: expected a number, got x ({}, line 2)"),
        (
            "env:\n  class_path: envs.RocketSimPool\n  num_arenas: 3\n",
            "--env.num_arenas: this setting belongs under init_args, not next to class_path ({}, line 3)",
        ),
        (
            "env:\n  init_args:\n    done:\n    - class_path: envs.TimeoutCondition\n      init_args: {timeout_s: 3}\n",
            "--env.done.timeout_s: TimeoutCondition has no such setting; did you mean timeout_seconds? ({}, line 5)",
        ),
        (
            "seed: 1\nnum_steps: [3\n",
            "--config {}, line 3: this is not a YAML file of settings: expected ',' or ']', but got '<stream end>'",
        ),
    ],
)
def test_a_mistake_in_a_file_names_the_file_and_the_line(output, tmp_path, text, message):
    own = tmp_path / "own.yaml"
    own.write_text(text)
    assert output("--config", own).err == f"train_fabric.py: error: {message.format(own)}\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is not a YAML file of settings (name: value)"),
        (b"- 3\n", "this is not a YAML file of settings (name: value)"),
        ("seed: 1  # Zürich\n".encode("latin-1"), "this is not UTF-8 text; save the file as UTF-8"),
        ("seed: 1\n".encode("utf-16"), "this is not UTF-8 text; save the file as UTF-8"),
    ],
)
def test_a_file_that_holds_no_settings_is_named(output, tmp_path, content, message):
    own = tmp_path / "own.yaml"
    own.write_bytes(content)
    assert output("--config", own).err == f"train_fabric.py: error: --config {own}: {message}\n"


def test_messages_of_a_command_name_the_file(tmp_path, capsys):
    own = tmp_path / "own.yaml"
    own.write_text("env:\n  class_path: envs.RocketSimPool\n  init_args: {num_arena: 2}\n")
    with pytest.raises(SystemExit):
        commands.main(["audit-rewards", "--config", str(own)])
    assert capsys.readouterr().err.endswith(f"did you mean num_arenas? ({own}, line 3)\n")


def test_a_plain_word_behind_a_flag_with_its_value_stays():
    assert remove_flags(["--config=a.yaml", "runs/x", "--seed", "1"], ["--config"]) == ["runs/x", "--seed", "1"]
    assert remove_flags(["--config", "a.yaml", "runs/x"], ["--config"]) == ["runs/x"]


@pytest.mark.parametrize("name", ["cartpole", "cartpole.yaml", "configs/cartpole.yaml"])
def test_a_preset_has_three_names(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resolve_preset(name) == str(PRESETS / "cartpole.yaml")
    (tmp_path / "cartpole").mkdir()
    assert resolve_preset(name) == str(PRESETS / "cartpole.yaml")


def test_a_file_of_the_users_own_comes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cartpole.yaml").write_text("seed: 7")
    assert resolve_preset("cartpole.yaml") == "cartpole.yaml"
    assert resolve_preset("../cartpole") == "../cartpole" and resolve_preset("seed: 7\n") == "seed: 7\n"
    assert resolve_preset("configs/demonstrations/cartpole.frd") == str(PRESETS / "demonstrations" / "cartpole.frd")


@pytest.mark.parametrize("words", [["--config", "cartpole"], ["--config=cartpole"]])
def test_a_command_line_takes_its_name(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = read_settings(train_fabric.main, words, "", DEFAULT_CONFIG)
    assert settings.given == words  # as it was said, for what is printed
    assert settings.arguments["env"].keywords["env_id"] == "CartPole-v1"
    assert read_sections([resolve_preset("cartpole")], "env")[-1]["class_path"] == "envs.GymnasiumEnvs"


def test_the_demonstrations_of_a_preset_are_found_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    env = partial(GymnasiumEnvs, "CartPole-v1", 1)
    assert trajectories_of(["configs/demonstrations/cartpole.frd"], env)


def test_the_error_of_a_file_that_there_is_not_lists_them(capsys):
    with pytest.raises(SystemExit, match=r"^2$"):
        train_fabric.cli(["--config", "cartpol"])
    assert (
        f"--config cartpol: no such file; did you mean cartpole? presets: {', '.join(preset_names())}\n"
        in capsys.readouterr().err
    )


SWITCHES = ("--resume", "--plain")
words = st.sampled_from(
    ["--resume", "--plain", "--run-id", "--run_id", "--env.num-arenas=3", "--agent.help", "--", "a-b", "-1", "--x=--y"]
)
words |= st.text(max_size=8) | st.text(alphabet="-=_.ab", max_size=8)
lines = st.lists(words, max_size=6)
pieces = st.sampled_from(
    [
        'Parser key "env": ',
        'Parser key "agent.lr": ',
        "Problem with given class_path 'a.B': ",
        "Does not validate against any of the Union subtypes\nSubtypes: [int]\nErrors:\n",
        "  - Expected a <class 'int'>. Got value: x\n",
        "Given value: x",
        "it has no setting actor.lr (did you mean actor_lr?)",
        "has no setting",
        "Expected a Literal['a', 'b']",
        "No module named 'a'",
        "module 're' has no attribute 'Nothing'",
        "argument --x: expected one argument",
        "\n    ",
    ]
)
messages = st.lists(pieces | st.text(max_size=10), max_size=6).map("".join)


@given(lines)
def test_flags_are_normalised_once_and_for_all(given_words):
    flags = normalize_flags(given_words, SWITCHES)
    assert len(flags) == len(given_words)
    assert normalize_flags(flags, SWITCHES) == flags
    for word, flag in zip(given_words, flags, strict=True):
        assert flag == word or word.startswith("--")
    assert all("-" not in name[2:] for name in flag_names(flags))


@given(lines)
def test_a_flag_is_found_until_it_is_taken_out(given_words):
    flags = normalize_flags(given_words, SWITCHES)
    for name in flag_names(flags):
        left = remove_flags(flags, [name])
        assert name not in flag_names(left) and last_flag_value(left, name) is None
        assert set(flag_names(left)) == set(flag_names(flags)) - {name}
    assert complete_help_flags(flags, {}) == flags


@given(messages)
@example("")
def test_every_message_becomes_one_line(message):
    line = one_line(message)
    assert "\n" not in line
    assert one_line(line).count("\n") == 0


@given(st.text(max_size=8), st.lists(st.text(max_size=8), max_size=4))
def test_a_suggestion_is_something_that_is_there(word, known):
    suggestion = did_you_mean(word, known)
    assert suggestion == "" or suggestion[len("; did you mean ") : -1] in known


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(["--nonsense", "--env_id", "--seed", "x", "--agent", "agents.Nope", "--gamma=[1"]), min_size=1
    )
)
@example(["--seed"])
def test_a_command_line_of_mistakes_ends_in_one_line(given_words):
    out, err = io.StringIO(), io.StringIO()
    with pytest.raises(SystemExit) as ended, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        train_fabric.cli([*given_words, "--print_config"])
    if ended.value.code:
        assert ended.value.code == 2 and err.getvalue().count("\n") == 1
        assert err.getvalue().startswith("train_fabric.py: error: ")
