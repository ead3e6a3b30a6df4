"""CelebA's loader, on faces that are made up."""

import numpy as np
import pytest

from disentwine.data import DATASETS, CelebA, CelebABeard, CelebASmile
from disentwine.data.images import write_image
from disentwine.errors import DataError

NAMES = ["Bald", "Male", "Mouth_Slightly_Open", "Narrow_Eyes", "No_Beard", "Smiling", "Young"]
FACES = 30


@pytest.fixture
def faces(tmp_path, monkeypatch):
    """Thirty faces of one grey each, the last six for validation and test."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1, 1], (FACES, len(NAMES)))
    folder = tmp_path / "celeba"
    (folder / "img_align_celeba").mkdir(parents=True)
    files = [f"{i:06d}.jpg" for i in range(1, FACES + 1)]
    for i, file in enumerate(files):
        write_image(folder / "img_align_celeba" / file, np.full((218, 178, 3), 8 * i, np.uint8))
    rows = [f"{file} {' '.join(map(str, row))}" for file, row in zip(files, signs, strict=True)]
    (folder / "list_attr_celeba.txt").write_text("\n".join([str(FACES), " ".join(NAMES), *rows]))
    parts = [0] * 24 + [1] * 3 + [2] * 3
    (folder / "list_eval_partition.txt").write_text(
        "\n".join(f"{file} {part}" for file, part in zip(files, parts, strict=True))
    )
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    return folder, signs


def test_attributes_split_and_faces_are_the_files(faces):
    _, signs = faces
    dataset = CelebA(size=16)
    assert dataset.names == tuple(NAMES)
    np.testing.assert_array_equal(dataset.factors, (signs + 1) / 2)
    assert [len(dataset.split[part]) for part in ("train", "validation", "test")] == [24, 3, 3]
    assert dataset.images.shape == (FACES, 16, 16, 3)
    np.testing.assert_allclose(dataset.images[:, 8, 8, 0], 8 * np.arange(FACES), atol=2)


@pytest.mark.parametrize(
    ("cls", "attributes"),
    [
        (CelebASmile, ["Male", "Smiling", "-Narrow_Eyes", "Mouth_Slightly_Open"]),
        (CelebABeard, ["-Young", "Male", "Bald", "-No_Beard"]),
    ],
)
def test_concepts_are_turned_as_the_paper_names_them(faces, cls, attributes):
    _, signs = faces
    dataset = cls(size=16)
    for column, attribute in zip(dataset.factors.T, attributes, strict=True):
        yes = signs[:, NAMES.index(attribute.lstrip("-"))] == (-1 if attribute[0] == "-" else 1)
        np.testing.assert_array_equal(column, yes)
    assert dataset.graph is None  # what causes what in faces is not known


def test_faces_are_read_once(faces):
    folder, _ = faces
    first = CelebA(size=16).images
    for file in (folder / "img_align_celeba").iterdir():
        file.unlink()
    np.testing.assert_array_equal(CelebA(size=16).images, first)


def test_a_limit_keeps_every_part(faces):
    dataset = CelebA(size=16, limit=10)
    assert [len(dataset.split[part]) for part in ("train", "validation", "test")] == [8, 1, 1]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("list_attr_celeba.txt", "30\nMale\n000001.jpg 1"),
        ("list_attr_celeba.txt", "1\nMale\n000001.jpg 5"),
        ("list_eval_partition.txt", "000001.jpg 0"),
        ("list_eval_partition.txt", "what is this"),
    ],
)
def test_damage_is_named(faces, file, content):
    folder, _ = faces
    (folder / file).write_text(content)
    with pytest.raises(DataError, match=file):
        CelebA(size=16)


def test_what_is_missing_is_named_with_its_source(monkeypatch, tmp_path):
    monkeypatch.setenv("DISENTWINE_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"list_attr_celeba\.txt.*mmlab"):
        DATASETS["celeba-smile"]()
