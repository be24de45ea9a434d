"""Configurations that somebody has changed, and what training, evaluating and `load_trained` make of them.

    python tests/campaigns/mutated_configs.py --number 400 --seed 0

Every one is either refused in one line or is settings that can be meant: another number, another class of the same
base. Nothing that it names is called before it is known to be of the right base, whatever it is.
"""

import copy
import random
import shutil
import sys
from pathlib import Path

import yaml

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.campaigns.campaign import Case, main, report, run
from tests.campaigns.mutated_checkpoints import RUNS, dicts, leaves, name_of, replaced

STEPS = 64
NOT_RIGHT = [float("nan"), float("inf"), [[1], {"a": 2}], {"a": {"b": 1}}, "\u202etext", 10**30, -(10**30), b"\xff"]
NUMBERS = [0, -1, 1, 0.5, True, None, "1", "text", "", [], {}, -0.0, 1e-300]
PROCESSES = {"devices", "num_nodes", "num_threads", "total_timesteps"}
"""Settings that may ask for more than a campaign has time for; they are left as they are."""
OTHER_CLASSES = (
    *("envs.Kickoff", "envs.LookupTable", "agents.PPOLightningAgent", "fabric_rl.callbacks.Notify", "torch.nn.Tanh"),
    *("envs", "envs.nothing", "nothing.at.all", "Kickoff", "", ".", "a..b", "envs.pool.rocket_pool", "__main__.x"),
    *("collections.OrderedDict", "builtins.dict", "torch.load", "torch.hub.load", "gymnasium.make", "yaml.unsafe_load"),
)


def other_value(settings, rng, canary):
    path, value = rng.choice([leaf for leaf in leaves(settings) if not PROCESSES & set(leaf[0])])
    right = rng.random() < 0.5
    other = rng.choice([x for x in (NUMBERS if right else NOT_RIGHT) if type(x) is not type(value) or not right])
    shown = other if not isinstance(other, int) or abs(other) < 10**9 else "huge"
    return replaced(settings, path, other), f"{name_of(path)} {shown!r}", right or isinstance(other, str | bytes | int)


def unknown_key(settings, rng, canary):
    path, inside = rng.choice(
        [each for each in dicts(settings) if not {"rewards", "signals", "parameters"} & set(each[0])]
    )
    key = rng.choice(["nothing", "class_path_", "", "init-args", "__class__", 7, None, "a.b", "--seed"])
    return replaced(settings, path, dict(inside) | {key: 1}), f"{key!r} in {name_of(path)}", False


def removed_key(settings, rng, canary):
    path, inside = rng.choice(list(dicts(settings)))
    key = rng.choice(list(inside))
    return replaced(settings, path, {k: v for k, v in inside.items() if k != key}), f"no {name_of((*path, key))}", True


def other_container(settings, rng, canary):
    path, _ = rng.choice([each for each in dicts(settings) if each[0]])
    other = rng.choice([3, "text", [], [3], True, 0.5, [{}]])
    return replaced(settings, path, other), f"{name_of(path)} {other!r}", False


def other_class(settings, rng, canary):
    path, inside = rng.choice([each for each in dicts(settings) if "class_path" in each[1]])
    name = rng.choice(OTHER_CLASSES)
    keeps = rng.random() < 0.5
    other = {"class_path": name, "init_args": inside.get("init_args", {})} if keeps else {"class_path": name}
    return replaced(settings, path, other), f"{name_of(path)} {name}", True


def attack(settings, rng, canary):
    """A class path that would leave the canary if it were called, wherever something is chosen."""
    path, _ = rng.choice([each for each in dicts(settings) if "class_path" in each[1]])
    program = f"touch {canary}"
    code = f"open({str(canary)!r}, 'w').close()"
    calls = {
        "os.system": {"command": program},
        "posix.system": {"command": program},
        "subprocess.Popen": {"args": program, "shell": True},
        "subprocess.run": {"args": program, "shell": True},
        "subprocess.getoutput": {"cmd": program},
        "builtins.exec": {"source": code},
        "builtins.eval": {"source": code},
        "builtins.open": {"file": str(canary), "mode": "w"},
        "pathlib.Path.touch": {"self": str(canary)},
        "os.mkdir": {"path": str(canary)},
        "code.InteractiveInterpreter.runcode": {"code": code},
        "timeit.timeit": {"stmt": code, "number": 1},
        "functools.partial": {"func": "os.system", "command": program},
        "runpy.run_path": {"path_name": str(canary.with_suffix(".py"))},
        "torch.save": {"obj": 1, "f": str(canary)},
        "torch.utils.data.DataLoader": {"dataset": code},
        "numpy.save": {"file": str(canary), "arr": [1]},
        "logging.FileHandler": {"filename": str(canary)},
        "shutil.copy": {"src": __file__, "dst": str(canary)},
        "multiprocessing.Process": {"target": "os.system", "args": [program]},
        "lightning.fabric.utilities.cloud_io.get_filesystem": {"path": str(canary)},
        "envs.ProcessPool": {
            "factory": {"class_path": "os.system", "init_args": {"command": program}},
            "num_workers": 1,
        },
        "envs.RLGymPool": {"build_env": {"class_path": "os.system", "init_args": {"command": program}}, "num_envs": 1},
        "envs.GymnasiumEnvs": {"env_id": f"{canary.stem}:CartPole-v1", "num_envs": 2},
    }
    name = rng.choice(list(calls))
    short = rng.random() < 0.2
    other = name if short else {"class_path": name, "init_args": calls[name]}
    return replaced(settings, path, other), f"{name_of(path)} {name}", False


def text(settings, rng, canary):
    """What is no settings, or more than that, as text."""
    whole = yaml.safe_dump(settings)
    code = f"open({str(canary)!r}, 'w').close()"
    laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    laughs += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    ways = {
        "recursive list": whole + "callbacks: &a [*a]\n",
        "recursive agent": "agent: &a {class_path: agents.PPOLightningAgent, init_args: *a}\n",
        "recursive env": "env: &a {class_path: envs.RocketSimPool, init_args: {reward: *a}}\n",
        "laughs": laughs + whole + "callbacks: *a11\n",
        "python object": whole + f"profile: !!python/object/apply:os.system ['touch {canary}']\n",
        "python name": whole + "profile: !!python/name:os.system\n",
        "python code": whole + f"profile: !!python/object/apply:eval [{code!r}]\n",
        "tag": whole + "profile: !nothing 3\n",
        "tab": "\tenv: 3\n" + whole,
        "two documents": whole + "---\n" + whole,
        "nothing": "",
        "a list": "- 1\n- 2\n",
        "a number": "3\n",
        "a text": "envs.RocketSimPool\n",
        "nul": "env\x00: 3\n",
        "bytes": "\udcff\udcfe",
        "deep": "a: " + "[" * 5000 + "]" * 5000 + "\n",
        "unclosed": "env: {class_path: envs.RocketSimPool\n",
        "json": '{"env": "os.system"}',
        "merge": "a: &a {num_steps: -5}\n<<: *a\n",
        "id": f"env_id: {canary.stem}:CartPole-v1\nnum_envs: 2\n",
        "a path": "env: /etc/passwd\nagent: /dev/zero\n",
    }
    name = rng.choice(list(ways))
    return ways[name], name, name in ("merge", "a text", "python name", "nothing", "two documents")


KINDS = [other_value, other_value, unknown_key, removed_key, other_container, other_class, attack, attack, text]


def settings_of(rng):
    """One of the configurations, small."""
    settings = yaml.safe_load(rng.choice(sorted(RUNS.glob("*.yaml"))).read_text())
    return copy.deepcopy(settings)


def loaded(folder):
    """What a script of the user's does with a folder that somebody handed on."""
    from fabric_rl import load_trained

    try:
        trained = load_trained(folder)
        envs = trained.env(seed=0)
        trained.agent(envs.single_observation_space, envs.single_action_space)
        envs.close()
    except (ValueError, TypeError, OSError) as error:
        print(
            f"load: error: {str(error).splitlines()[0] if chr(10) not in str(error) else repr(str(error))}",
            file=sys.stderr,
        )
        return 2
    return 0


def cases(folder, exported, number, seed):
    """Makes the cases one by one."""
    rng = random.Random(seed)
    for index in range(number):
        canary = folder / f"canary{index:04d}"
        mutate = rng.choice(KINDS)
        settings = settings_of(rng)
        changed, what, may_be = mutate(settings, rng, canary)
        content = changed if isinstance(changed, str) else yaml.safe_dump(changed, allow_unicode=True)
        own = folder / "given" / f"{index:04d}"
        own.mkdir(parents=True)
        config = own / "config.yaml"
        config.write_bytes(content.encode("utf-8", "surrogateescape"))
        way = rng.choice(["train", "train", "train", "evaluate", "load_trained"])
        program, words = "train_fabric.py", ["--config", str(config), "--runs_dir", str(own / "runs")]
        words += ["--total_timesteps", str(STEPS)]
        if way != "train":
            for name in ("weights.ckpt",):
                shutil.copy(exported / name, own / name)
            may_be = may_be or not ({"env", "agent"} & set(what.split("'")[1:2]))  # what it reads of the file
        if way == "evaluate":
            program, words = "fabric-rl", ["evaluate", str(own), "idle", "--matches", "2", "--minutes", "0.05"]
        elif way == "load_trained":
            program, words = "tests.campaigns.mutated_configs:loaded", [str(own)]
        kind = mutate.__name__.replace("_", " ")
        module = {f"{canary.name}.py": f"open({str(canary)!r}, 'w').close()\n"}
        yield Case(kind, f"{index} ({way}): {what}", words, lambda err, may=may_be: may, program, canary, module)


def campaign(folder, number, seed):
    """Runs it; returns what `report` does."""
    for name in ("base", "forks"):
        (folder / name).mkdir()
    base = ["--config", str(RUNS / "phases.yaml"), "--runs_dir", str(folder / "runs"), "--run_id", "base"]
    (folder / "export").mkdir()
    assert not report(run([Case("base", "trained", base, lambda err: True)], folder / "base"))
    words = ["export", str(folder / "runs" / "base"), str(folder / "exported")]
    assert not report(run([Case("base", "exported", words, lambda err: True, "fabric-rl")], folder / "export"))
    return report(run(cases(folder, folder / "exported", number, seed), folder / "forks"))


if __name__ == "__main__":
    main(__doc__, campaign, 400)
