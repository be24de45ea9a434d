"""No command line and no message makes the code crash that reads it."""

import contextlib
import io

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import train_fabric
from fabric_rl.base.argv import names_of, normalise, value_of, with_classes_of_help, without
from fabric_rl.base.messages import one_line
from fabric_rl.base.text import did_you_mean

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
    flags = normalise(given_words, SWITCHES)
    assert len(flags) == len(given_words)
    assert normalise(flags, SWITCHES) == flags
    for word, flag in zip(given_words, flags, strict=True):
        assert flag == word or word.startswith("--")
    assert all("-" not in name[2:] for name in names_of(flags))


@given(lines)
def test_a_flag_is_found_until_it_is_taken_out(given_words):
    flags = normalise(given_words, SWITCHES)
    for name in names_of(flags):
        left = without(flags, [name])
        assert name not in names_of(left) and value_of(left, name) is None
        assert set(names_of(left)) == set(names_of(flags)) - {name}
    assert with_classes_of_help(flags, {}) == flags


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
