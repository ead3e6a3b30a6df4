# Everything runs in .venv, which is made once and made anew when what it holds has changed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint prove bench clean
.DEFAULT_GOAL := demo

# torch comes first and pinned: a bare "torch" would bring gigabytes of CUDA.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'disentwine needs Python 3.11 or newer')"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/disentwine demo
	@echo "next: . $(BIN)/activate && disentwine --help"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2

# Proofs that take minutes: survival of kills, exact resume over many of them.
prove: $(READY)
	$(BIN)/pytest -m slow

bench: $(READY)
	$(BIN)/python benchmarks/drawing.py
	$(BIN)/python benchmarks/training.py

clean:
	rm -rf .venv
