"""``--device``: where commands compute, and what they say where there is no such device."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

FLOWERS = Path(__file__).parent / "flowers.csv"
TORCH = importlib.util.find_spec("torch") is not None


def has_card():
    if not TORCH:
        return False
    import torch

    return torch.cuda.is_available()


CARD = has_card()
WHY = "torch finds no CUDA" if TORCH else "needs torch, which is not installed: pip install"


def fit(command, *more, **options):
    return command("fit", FLOWERS, "--label", "species", "-o", "m.skops", "--force", *more,
                   **options)  # fmt: skip


@pytest.mark.skipif(CARD, reason="there is a card")
class TestWithoutACard:
    @pytest.mark.parametrize("way", ["option", "variable"])
    def test_commands_say_so_before_they_read(self, command, way):
        asked = ["--device", "cuda"] if way == "option" else []
        env = {"KERNELATOMS_DEVICE": "cuda"} if way == "variable" else {}
        for arguments in (
            ["fit", FLOWERS, "--label", "species"],
            ["predict", "none.skops", "none.csv"],
            ["encode", "none.skops", "none.csv"],
        ):
            done = command(*arguments, *asked, env=env)
            assert done.returncode == 2
            assert done.stdout == ""
            assert done.stderr.startswith("Error: --device (or KERNELATOMS_DEVICE): device")
            assert "'cuda'" in done.stderr
            assert WHY in done.stderr
            assert "Traceback" not in done.stderr

    def test_the_option_wins(self, command):
        assert fit(command, "--device", "cpu", env={"KERNELATOMS_DEVICE": "cuda"}).returncode == 0

    def test_what_needs_none_does_not_ask(self, command):
        assert fit(command).returncode == 0
        asked = ("explain", "m.skops", FLOWERS, "--row", "0")
        plain, done = command(*asked), command(*asked, env={"KERNELATOMS_DEVICE": "cuda"})
        assert (done.returncode, done.stdout) == (0, plain.stdout)

    def test_what_was_there_stays(self, command, tmp_path):
        assert fit(command).returncode == 0
        before = (tmp_path / "m.skops").read_bytes()
        assert fit(command, "--device", "cuda").returncode == 2
        assert (tmp_path / "m.skops").read_bytes() == before
        assert [path.name for path in tmp_path.iterdir()] == ["m.skops"]


def test_wrong_names(command):
    done = fit(command, "--device", "gpu")
    assert done.returncode == 2
    assert "device must be 'cpu', 'cuda', 'cuda:1', ..., got 'gpu'." in done.stderr


@pytest.mark.parametrize("name", ["", " "])
def test_no_name_is_no_device(command, name):
    assert fit(command, env={"KERNELATOMS_DEVICE": name}).returncode == 0


def test_help_names_it(command):
    for name in ("fit", "predict", "encode"):
        said = command(name, "--help").stdout
        assert "--device" in said
        assert "KERNELATOMS_DEVICE" in said


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if CARD else [])])
def test_a_model_from_anywhere_is_the_same(command, tmp_path, device):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", rng.normal(size=(60, 8)))
    codes = []
    for where in ([], ["--device", device]):
        done = command("fit", "rows.npy", "--model", "KSVD", "--set", "n_atoms=12", "-o",
                       "m.skops", "--force", *where)  # fmt: skip
        assert done.returncode == 0, done.stderr
        done = command("encode", "m.skops", "rows.npy", "-o", "codes.npy", "--force", *where)
        assert done.returncode == 0, done.stderr
        codes.append(np.load(tmp_path / "codes.npy"))
    np.testing.assert_allclose(codes[1], codes[0], atol=1e-6)
    fit(command)
    plain = command("predict", "m.skops", FLOWERS)
    there = command("predict", "m.skops", FLOWERS, "--device", device)
    assert (there.returncode, there.stdout) == (0, plain.stdout)
