"""The notebooks run from the first cell to the last, and are kept with what they showed.

`python tests/test_notebooks.py [NAME ...]` runs them and stores their outputs.
"""

import ast
import html
import os
import sys
import tempfile
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
SAID = {  # what a cell must have printed, and how many figures there are
    "01_first_run": (("32 cars", "advantages (32, 32) -> batch of 1024", "gradient norm"), 4),
    "02_swap_the_agent": (
        (
            "Forgetful",
            "anything defined only in a notebook or interactive session cannot be sent to a worker",
            "rewards from two worker processes: [10. 10. 10. 10. 10. 10. 10. 10.]",
        ),
        1,
    ),
    "03_rewards_and_states": (
        ("teams exchanged", "the first touch in step ", f"{2 if hasattr(os, 'fork') else 1} processes, 81,920 steps"),
        2,
    ),
    "04_watch_and_plot": (("seed 2: 20,480 steps", "written: seed0.html"), 4),
    "05_compare_and_sweep": (
        ("5 of 5 runs of group a2c are trained", "probability", "best settings: sweeps/space/best.yaml"),
        1,
    ),
}
SMOKE = "03_rewards_and_states"
"""The quickest, for every day."""
CAMPAIGN = "05_compare_and_sweep"


def read(name):
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_every_notebook_is_tested():
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} == set(SAID)


@pytest.mark.slow
@pytest.mark.parametrize("name", SAID)
def test_a_notebook_is_valid_and_shows_what_came_out(name):
    notebook = read(name)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.metadata.kernelspec.name) == (4, "python3")
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert [cell.execution_count for cell in code_cells(notebook)] == list(range(1, len(code_cells(notebook)) + 1))
    check_outputs(name, notebook)
    assert str(ROOT) not in nbformat.writes(notebook) and "/tmp/" not in nbformat.writes(notebook)
    sizes = ast.parse(code_cells(notebook)[0].source).body  # nothing but constants
    assert all(isinstance(line, ast.Assign) and line.targets[0].id.isupper() for line in sizes)


def tier(name):
    marks = {SMOKE: [], CAMPAIGN: [pytest.mark.learning]}
    return pytest.param(name, marks=marks.get(name, [pytest.mark.slow]))


@pytest.mark.slow
@pytest.mark.timeout(500)
@pytest.mark.parametrize("name", [tier(name) for name in SAID])
def test_a_notebook_runs(name, tmp_path, monkeypatch):
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "MPLCONFIGDIR"):  # nothing is left in the home folder
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    for variable in ("MPLBACKEND", "LOCAL_WORLD_SIZE", "LOCAL_RANK"):  # of whoever runs the tests
        monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "work"
    folder.mkdir()
    notebook = executed(name, folder)
    check_outputs(name, notebook)
    if name.startswith("04"):
        assert "<title>seed0" in (folder / "seed0.html").read_text()


def executed(name, folder):
    notebook = read(name)
    NotebookClient(
        notebook,
        timeout=400,
        kernel_name="python3",
        coalesce_streams=True,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    return notebook


def check_outputs(name, notebook):
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    texts, figures = SAID[name]
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    for text in texts:
        assert text in printed
    assert sum("image/png" in output.get("data", {}) for output in outputs) == figures
    tables = [output["data"]["text/html"] for output in outputs if "text/html" in output.get("data", {})]
    if name.startswith("03"):
        assert len(tables) == 1 and all(f"<th>{part}</th>" in tables[0] for part in ("told", "Touch", "total"))
    if name.startswith("04"):
        assert len(tables) == 1 and "<canvas" in html.unescape(tables[0])


def store(name):
    """Runs a notebook in an empty folder and keeps its outputs, without when they came."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = executed(name, folder)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
    notebook.metadata = {"kernelspec": read(name).metadata.kernelspec}
    nbformat.write(notebook, ROOT / "notebooks" / f"{name}.ipynb")


if __name__ == "__main__":
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    for chosen in sys.argv[1:] or SAID:
        store(chosen)
