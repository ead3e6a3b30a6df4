"""Cars3D's loader, on cars that are made up."""

import numpy as np
import pytest
from scipy.io import savemat

from disentwine.data import Cars3D
from disentwine.data.published import cars3d
from disentwine.errors import DataError

CARS = 3


@pytest.fixture
def cars(tmp_path, monkeypatch):
    """Three cars; every image is grey in its corner pixel blocks as its place in the files says."""
    monkeypatch.setattr(cars3d, "CARS", CARS)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "cars3d" / "cars"
    folder.mkdir(parents=True)
    names = [f"car_{i:03}_mesh" for i in (1, 2, 5)]
    (folder / "list.txt").write_text("\n".join(names) + "\n")
    for i, name in enumerate(names):
        im = np.zeros((128, 128, 3, 24, 4), np.uint8)
        im[:2, 2:4, 0] = np.arange(24)[:, None]
        im[:2, 2:4, 1] = np.arange(4)
        im[126:, :2, 2] = 10 + i
        savemat(folder / f"{name}.mat", {"im": im}, do_compression=True)
    return folder


def test_pictures_and_factors_belong_together(cars):
    dataset = Cars3D()
    assert dataset.images.shape == (CARS * 96, 64, 64, 3)
    car, azimuth, elevation = dataset.factors.T
    np.testing.assert_array_equal(dataset.images[:, 0, 1, 0], azimuth / 15)
    np.testing.assert_array_equal(dataset.images[:, 0, 1, 1], elevation / 6)
    np.testing.assert_array_equal(dataset.images[:, 63, 0, 2], 10 + car)
    assert dataset.images[:, 0, 0].max() == 0
    assert sorted(np.concatenate(list(dataset.split.values()))) == list(range(CARS * 96))


def test_cars_are_read_once_and_their_folder_left_alone(cars, monkeypatch):
    before = sorted(cars.iterdir())
    first = Cars3D(size=16).images
    assert sorted(cars.iterdir()) == before

    def fail(*args, **kwargs):
        raise AssertionError("read again")

    monkeypatch.setattr(cars3d, "read_cars", fail)
    np.testing.assert_array_equal(Cars3D(size=16).images, first)
    savemat(cars / "car_005_mesh.mat", {"im": np.zeros((8, 8), np.uint8)})
    with pytest.raises(AssertionError, match="read again"):
        Cars3D(size=16)


def test_damage_and_absence_are_named(cars, monkeypatch, tmp_path):
    (cars / "car_002_mesh.mat").write_bytes(b"not a car")
    with pytest.raises(DataError, match="car_002_mesh"):
        Cars3D()
    savemat(cars / "car_002_mesh.mat", {"im": np.zeros((8, 8), np.uint8)})
    with pytest.raises(DataError, match=r"car_002_mesh.*shape"):
        Cars3D()
    (cars / "car_002_mesh.mat").unlink()
    with pytest.raises(DataError, match="car_002_mesh"):
        Cars3D()
    (cars / "list.txt").write_text("car_001_mesh\n")
    with pytest.raises(DataError, match=r"list\.txt"):
        Cars3D()
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataError, match="scottreed"):
        Cars3D()
