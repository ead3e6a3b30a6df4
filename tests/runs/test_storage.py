"""Disks that are full, read-only or not what they seem: one line, and nothing that was saved is lost."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from disentwine.errors import DisentwineError, StorageError, UsageError
from disentwine.runs.checkpoint import checkpoint_path, checkpoint_steps, load_checkpoint
from disentwine.runs.storage import make_folder, write_atomically, write_folder_atomically


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """The system refuses to write files beyond a size, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def complaint(train: Any, out: Path) -> str | None:
    """What the storage error of a session says; none when the training ended."""
    try:
        train(out)
    except StorageError as error:
        return str(error)
    return None


def assert_intact(run: Path) -> None:
    steps = checkpoint_steps(run / "checkpoints")
    assert steps
    for step in steps:
        load_checkpoint(checkpoint_path(run / "checkpoints", step))


def test_a_read_only_folder_is_one_line_with_a_remedy(
    tmp_path: Path, train: Any, without_permissions: Any
) -> None:
    (tmp_path / "locked").mkdir(mode=0o555)
    out = tmp_path / "locked" / "run"
    with without_permissions(), pytest.raises(StorageError) as caught:
        train(out)
    message = str(caught.value)
    assert str(out) in message
    assert "no permission" in message
    assert "choose another folder" in message
    assert "\n" not in message
    assert caught.value.exit_code != 0


def test_a_folder_that_becomes_read_only_keeps_what_it_has(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    out = tmp_path / "run"

    def session(step: int, error: int) -> None:
        mkdir = os.mkdir

        def refuse(path: Any, *args: Any, **kwargs: Any) -> None:
            if "half-written" in str(path) and len(checkpoint_steps(out / "checkpoints")) >= step:
                raise OSError(error, os.strerror(error), str(path))
            mkdir(path, *args, **kwargs)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "mkdir", refuse)
            with pytest.raises(StorageError, match=r"choose another folder.*before is intact"):
                train(out)

    for step, error in ((1, errno.EROFS), (2, errno.EACCES)):
        session(step, error)
        assert_intact(out)
    train(out)
    assert fingerprint(out) == uninterrupted


@pytest.mark.parametrize("part", ["", "below"])
def test_a_path_that_is_a_file(part: str, tmp_path: Path, train: Any) -> None:
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / part
    with pytest.raises(StorageError, match=r"file.*choose another folder") as caught:
        train(out)
    assert str(out) in str(caught.value)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_that_is_too_long(tmp_path: Path, train: Any) -> None:
    with pytest.raises(StorageError, match="too long"):
        train(tmp_path / ("x" * 300))


def test_a_folder_of_something_else_is_not_touched(tmp_path: Path, train: Any) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(UsageError, match=r"not empty and not a run folder; choose another"):
        train(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("name", ["checkpoints", "tensorboard", "metrics.jsonl"])
def test_an_obstacle_inside_the_run_folder(name: str, tmp_path: Path, train: Any) -> None:
    out = tmp_path / "run"

    def stop(model: Any, step: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(out, on_save=stop)
    if (out / name).is_dir():
        shutil.rmtree(out / name)
        (out / name).write_text("")
    else:
        (out / name).unlink()
        (out / name).mkdir()
    with pytest.raises(DisentwineError, match=name) as caught:
        train(out)
    assert "\n" not in str(caught.value)


def test_a_full_disk_at_every_sync(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any, monkeypatch: Any
) -> None:
    out, fsync = tmp_path / "run", os.fsync
    left = 0

    def full(handle: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", full)
    failures = 0
    for left in range(2, 40, 2):  # noqa: B007 - counted down inside
        said = complaint(train, out)
        if said is None:
            break
        failures += 1
        assert "the disk is full; free some space" in said
        assert str(out) in said
        if checkpoint_steps(out / "checkpoints"):
            assert_intact(out)
    assert failures > 5
    monkeypatch.setattr(os, "fsync", fsync)
    assert fingerprint(out) == uninterrupted


def test_the_system_refusing_to_write_a_checkpoint(
    tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any, leftovers: Any
) -> None:
    out = tmp_path / "run"
    with files_no_larger_than(100_000), pytest.raises(StorageError, match="step-00000000"):
        train(out)
    assert leftovers(out) == []

    def limit(model: Any, step: int) -> None:
        if step == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))

    with (
        files_no_larger_than(resource.RLIM_INFINITY),
        pytest.raises(StorageError, match="step-00000008"),
    ):
        train(out, on_save=limit)
    assert_intact(out)
    assert leftovers(out) == []
    train(out)
    assert fingerprint(out) == uninterrupted


@pytest.mark.parametrize("size", [0, 50, 300])
def test_the_system_refusing_to_write_the_log(
    size: int, tmp_path: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    out = tmp_path / "run"

    def limit(model: Any, step: int) -> None:
        if step == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    with files_no_larger_than(resource.RLIM_INFINITY), pytest.raises(StorageError) as caught:
        train(out, on_save=limit)
    assert str(out) in str(caught.value)
    assert_intact(out)
    train(out)
    assert fingerprint(out) == uninterrupted


def test_a_fault_of_the_data_is_not_called_a_fault_of_the_disk(tmp_path: Path, train: Any) -> None:
    def fail(model: Any, step: int) -> None:
        raise FileNotFoundError(errno.ENOENT, "not ours", "picture.png")

    with pytest.raises(FileNotFoundError, match="not ours"):
        train(tmp_path / "run", on_save=fail)


def test_a_folder_that_cannot_be_written_whole_is_not_written(tmp_path: Path) -> None:
    with files_no_larger_than(10), pytest.raises(StorageError):
        write_folder_atomically(tmp_path / "a", {"small": b"x", "large": b"x" * 100})
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_replaced_stays(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a", "old")
    with files_no_larger_than(10), pytest.raises(StorageError):
        write_atomically(tmp_path / "a", "x" * 100)
    assert (tmp_path / "a").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


def test_make_folder_keeps_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("kept")
    assert make_folder(tmp_path / "a") == tmp_path / "a"
    assert (tmp_path / "a" / "b").read_text() == "kept"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
def test_a_disk_that_is_really_full(
    small_disk: Path, train: Any, fingerprint: Any, uninterrupted: Any
) -> None:
    out = small_disk / "run"
    failures = 0
    for kilobytes in range(64, 8192, 150):
        options = f"remount,size={kilobytes}k"
        subprocess.run(["mount", "-o", options, str(small_disk)], check=True)
        said = complaint(train, out)
        if said is None:
            break
        failures += 1
        assert "the disk is full" in said
        if (out / "checkpoints").is_dir() and checkpoint_steps(out / "checkpoints"):
            assert_intact(out)
    assert failures > 5
    assert fingerprint(out) == uninterrupted


@pytest.mark.slow
def test_a_disk_that_is_really_read_only(small_disk: Path, train: Any) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(StorageError, match="read-only"):
        train(small_disk / "run")
