"""The versions that a tournament's opening records."""

from commands.settings.version import VERSION, package_versions


def test_the_versions_of_what_shapes_results_are_told() -> None:
    """An opening keeps them: another torch may give another response."""
    versions = dict(package_versions())

    assert versions["tourney"] == VERSION
    assert {"numpy", "sacrebleu"} <= versions.keys()
