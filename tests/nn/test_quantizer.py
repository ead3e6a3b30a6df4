"""Codes are the nearest ones, codebooks follow their vectors, and dead codes come back."""

from __future__ import annotations

import pytest
import torch

from disentwine.nn.quantizer import Quantizer, perplexity


@pytest.fixture
def quantizer() -> Quantizer:
    torch.manual_seed(0)
    return Quantizer(num_codebooks=3, codebook_size=7, code_dim=4)


def test_every_sub_vector_becomes_the_nearest_code_of_its_own_codebook(
    quantizer: Quantizer,
) -> None:
    z = torch.randn(5, 3, 6, 4)
    q = quantizer(z)
    for n in range(5):
        for book in range(3):
            for position in range(6):
                distances = [
                    float((z[n, book, position] - code).square().sum())
                    for code in quantizer.table[book].detach()
                ]
                nearest = distances.index(min(distances))
                assert q.indices[n, book, position] == nearest
                assert torch.allclose(
                    q.vectors[n, book, position], quantizer.table[book, nearest], atol=1e-5
                )
    distance = (z - quantizer.look_up(q.indices)).square().sum((1, 2, 3))
    assert torch.allclose(q.commitment, distance, atol=1e-4)
    assert torch.allclose(q.codebook, distance, atol=1e-4)


def test_gradients_pass_straight_through_and_stop_where_they_should(quantizer: Quantizer) -> None:
    z = torch.randn(2, 3, 6, 4, requires_grad=True)
    weight = torch.randn(2, 3, 6, 4)
    q = quantizer(z)
    (through,) = torch.autograd.grad((q.vectors * weight).sum(), z, retain_graph=True)
    assert torch.equal(through, weight)
    to_z, to_table = torch.autograd.grad(
        q.commitment.sum(), [z, quantizer.table], retain_graph=True, allow_unused=True
    )
    assert torch.allclose(to_z, 2 * (z - q.vectors).detach(), atol=1e-5)
    assert to_table is None
    to_z, to_table = torch.autograd.grad(q.codebook.sum(), [z, quantizer.table], allow_unused=True)
    assert to_z is None
    assert to_table.any()


def test_averages_are_those_of_a_plain_loop() -> None:
    torch.manual_seed(0)
    quantizer = Quantizer(
        num_codebooks=2, codebook_size=3, code_dim=2, update="ema", decay=0.9, dead=0.0
    )
    usage, average = torch.zeros(2, 3), torch.zeros(2, 3, 2)
    table = quantizer.table.clone()
    for _ in range(4):
        z = torch.randn(5, 2, 4, 2)
        indices = quantizer(z).indices
        quantizer.after_update()
        for book in range(2):
            for code in range(3):
                chosen = z[:, book][indices[:, book] == code]
                usage[book, code] += 0.1 * (len(chosen) - usage[book, code])
                average[book, code] += 0.1 * (chosen.sum(0) - average[book, code])
                if usage[book, code] > 0:
                    table[book, code] = average[book, code] / usage[book, code]
        assert torch.allclose(quantizer.table, table, atol=1e-5)


@pytest.mark.parametrize("update", ["gradient", "ema"])
def test_dead_codes_are_put_where_vectors_are(update: str) -> None:
    torch.manual_seed(0)
    quantizer = Quantizer(num_codebooks=1, codebook_size=16, code_dim=2, update=update)  # type: ignore[arg-type]
    # Nine tenths of the vectors are alike, as the ground of an image is.
    rare = torch.tensor([[5.0, 0], [0, 5], [-5, 0], [0, -5]])
    z = torch.zeros(1, 1, 200, 2)
    z[0, 0, :20] = rare.repeat(5, 1)
    assert quantizer(z).perplexity < 5
    for _ in range(3):
        quantizer(z)
        quantizer.after_update()
    distances = (z - quantizer(z).vectors).square().sum(-1)
    assert distances.max() < 1e-6


def test_nothing_moves_in_evaluation_or_twice_for_a_batch() -> None:
    quantizer = Quantizer(num_codebooks=1, codebook_size=4, code_dim=2, update="ema").eval()
    before = quantizer.table.clone()
    quantizer(torch.randn(3, 1, 5, 2))
    quantizer.after_update()
    assert torch.equal(quantizer.table, before)
    quantizer.train()
    quantizer(torch.randn(3, 1, 5, 2))
    assert torch.equal(quantizer.table, before), "the loss of a batch moves the codebooks"
    quantizer.after_update()
    moved = quantizer.table.clone()
    assert not torch.equal(moved, before)
    quantizer.after_update()
    assert torch.equal(quantizer.table, moved)


def test_perplexity_counts_the_codes_in_use() -> None:
    assert perplexity(torch.zeros(2, 1, 5, dtype=torch.int64), 8) == pytest.approx(1)
    assert perplexity(torch.tensor([[[0, 1, 2, 3]]]), 8) == pytest.approx(4)
    both = torch.tensor([[[0, 0], [0, 1]]])
    assert perplexity(both, 8) == pytest.approx(1.5), "the mean over codebooks"


def test_soft_choices_add_up_and_have_gradients(quantizer: Quantizer) -> None:
    z = torch.randn(2, 3, 6, 4, requires_grad=True)
    indices = quantizer.nearest(z.detach())
    chosen = quantizer.one_hot(z, indices)
    assert torch.equal(chosen.argmax(-1), indices)
    assert torch.allclose(chosen.sum(-1), torch.ones(2, 3, 6), atol=1e-5)
    (gradient,) = torch.autograd.grad((chosen * torch.randn_like(chosen)).sum(), z)
    assert gradient.any()
