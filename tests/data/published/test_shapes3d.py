"""The loader of the published Shapes3D, on a small file of the same form."""

import h5py
import numpy as np
import pytest

from disentwine.data import Shapes3DAuthors
from disentwine.data.lazy_images import every_combination
from disentwine.data.published import shapes3d as shapes3d_authors
from disentwine.data.synthetic.shapes3d import grid
from disentwine.errors import DataError


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A file of 108 images instead of 480,000."""
    values = grid(hues=3, scales=1, orientations=1)
    monkeypatch.setattr(shapes3d_authors, "VALUES", values)
    monkeypatch.setattr(shapes3d_authors, "AT_ONCE", 50)
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    labels = every_combination(*values)
    images = np.random.default_rng(0).integers(0, 256, (len(labels), 64, 64, 3), dtype=np.uint8)
    write(tmp_path, images, labels)
    return tmp_path, images, labels


def write(folder, images, labels):
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file["images"], file["labels"] = images, labels


def test_images_are_unpacked_once(published):
    folder, images, labels = published
    dataset = Shapes3DAuthors()
    np.testing.assert_array_equal(dataset.images[:], images)
    np.testing.assert_array_equal(dataset.factors, labels)
    assert sorted(path.name for path in folder.iterdir()) == ["3dshapes.h5", "3dshapes.npy"]
    (folder / "3dshapes.h5").unlink()
    np.testing.assert_array_equal(Shapes3DAuthors().images[[5, 107]], images[[5, 107]])


def test_another_file_is_refused_and_leaves_nothing(published):
    folder, images, labels = published
    for wrong in ((images, labels[::-1]), (images[:, :32], labels), (images[:9], labels[:9])):
        write(folder, *wrong)
        with pytest.raises(DataError, match=r"3dshapes\.h5"):
            Shapes3DAuthors()
    (folder / "3dshapes.h5").write_bytes(b"no file of images")
    with pytest.raises(DataError, match=r"3dshapes\.h5"):
        Shapes3DAuthors()
    assert [path.name for path in folder.iterdir()] == ["3dshapes.h5"]
    (folder / "3dshapes.h5").unlink()
    with pytest.raises(DataError, match="github"):
        Shapes3DAuthors()
