# Everything runs in .venv, which is made once and made anew when what it holds has changed.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint browser prove bench clean
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
	@echo "next: . $(BIN)/activate && disentwine serve runs/demo --open"

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The page is tested in a real browser, which pip does not bring.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	|| echo "no browser: the page's tests are skipped; for them, apt-get install chromium"

test: lint browser
	$(BIN)/pytest -n 2

# Proofs that take minutes: survival of kills, exact resume over many of them.
prove: $(READY)
	$(BIN)/pytest -m slow

bench: $(READY)
	$(BIN)/python benchmarks/drawing.py
	$(BIN)/python benchmarks/training.py

clean:
	rm -rf .venv
