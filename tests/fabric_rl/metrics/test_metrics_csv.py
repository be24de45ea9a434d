"""metrics.csv: rows of a run that goes on, columns that come later, the end of a long file."""

from fabric_rl.metrics.csv_tables import number, read_rows
from fabric_rl.metrics.metrics_csv import MetricsFile


def test_a_run_that_goes_on_keeps_the_rows_up_to_its_step(tmp_path):
    first = MetricsFile(tmp_path)
    for step in (15, 30, 45):
        first.log_metrics({"a": step / 10}, step)
    again = MetricsFile(tmp_path, until=30)
    assert len(read_rows(tmp_path / "metrics.csv")) == 3  # nothing changes before there is something to log
    again.log_metrics({"a": 7.0}, 45)
    assert [tuple(row.values()) for row in read_rows(tmp_path / "metrics.csv")] == [
        ("15", "1.5"),
        ("30", "3.0"),
        ("45", "7.0"),
    ]


def test_a_metric_that_comes_later_gets_a_column_and_one_that_stays_away_an_empty_cell(tmp_path):
    file = MetricsFile(tmp_path)
    file.log_metrics({"b": 1.0}, 1)
    file.log_metrics({"b": 2.0, "a": 3.0}, 2)
    file.log_metrics({"a": 4.0}, 3)
    assert (tmp_path / "metrics.csv").read_text().splitlines() == ["step,b,a", "1,1.0,", "2,2.0,3.0", "3,,4.0"]


def test_a_new_run_leaves_no_rows_of_another(tmp_path):
    MetricsFile(tmp_path).log_metrics({"a": 1.0}, 1)
    MetricsFile(tmp_path).log_metrics({"b": 2.0}, 2)
    assert read_rows(tmp_path / "metrics.csv") == [{"step": "2", "b": "2.0"}]


def test_the_end_of_a_long_file_begins_with_a_whole_row(tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_text("step,a\n100,1\n200,2\n300,3\n4")  # the last row is half written
    whole = [{"step": "100", "a": "1"}, {"step": "200", "a": "2"}, {"step": "300", "a": "3"}]
    assert read_rows(path) == read_rows(path, last_bytes=1000) == whole
    assert read_rows(path, last_bytes=12) == whole[2:]  # from within "200,2"
    assert read_rows(path, last_bytes=1) == []


def test_only_finite_numbers_are_numbers():
    assert [number(cell) for cell in ("1.5", "-2", "", None, "nan", "inf", "x")] == [1.5, -2.0, *[None] * 5]
