"""Results of tasks on disk."""

from pathlib import Path

from certimap.experiments.store import Store


def test_results_are_kept_with_their_parameters(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep" / "results")
    assert store.get("a") is None
    store.put("a", {"seed": 0}, {"value": [1.5, None]})
    assert Store(store.folder).get("a") == {"value": [1.5, None]}
    assert '"parameters": {"seed": 0}' in (store.folder / "a.json").read_text()
    assert [path.name for path in store.folder.iterdir()] == ["a.json"]  # no draft is left


def test_damaged_files_count_as_missing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for text in ("", '{"result": [1, 2', '{"other": 1}'):
        (tmp_path / "a.json").write_text(text)
        assert store.get("a") is None
