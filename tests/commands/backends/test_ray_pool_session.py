"""How Ray is found, and what there is to compute on."""

from typing import Any

import pytest

from commands.backends.ray_pool import Place, connected, places
from commands.errors import ConfigurationError
from commands.settings.schema import GenerationSection


def node(*, alive: bool = True, **resources: float) -> dict[str, Any]:
    """Return a machine as Ray lists it."""
    return {"Alive": alive, "Resources": {"memory": 1e9, **resources}}


@pytest.mark.parametrize(
    ("nodes", "chosen", "expected"),
    [
        ([node(CPU=8.0, GPU=2.0), node(CPU=4.0)], {}, [Place(1, 1)] * 2),
        ([node(CPU=8.0, GPU=2.0)], {"device": "cpu"}, [Place(8)]),
        ([node(CPU=8.0), node(CPU=2.0)], {}, [Place(8), Place(2)]),
        ([node(CPU=2.0), node(alive=False, CPU=9.0)], {}, [Place(2)]),
        ([node(), node(CPU=1.0)], {}, [Place(1)]),
    ],
)
def test_each_gpu_is_a_place_or_each_machine(
    nodes: list[dict[str, Any]], chosen: dict[str, Any], expected: list[Place]
) -> None:
    """Two copies of the weights on one GPU would not fit; a machine lost is none."""
    assert places(nodes, GenerationSection(**chosen)) == expected


def test_a_cluster_without_anything_to_compute_on_is_refused() -> None:
    """Waiting would never end."""
    with pytest.raises(ConfigurationError, match="neither GPUs nor CPUs; see `ray status`"):
        places([node(), node(alive=False, CPU=2.0)], GenerationSection())


def test_an_address_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word in place of host and port, told in one line."""
    monkeypatch.setenv("RAY_ADDRESS", "the cluster")

    with (
        pytest.raises(ConfigurationError, match=r"^Ray at the cluster does not answer: .*unset"),
        connected(),
    ):
        pass
