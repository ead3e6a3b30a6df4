# Everything runs in .venv, which is made again when its requirements change.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test pytest lint browser prove bench clean
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
	$(BIN)/python tools/house.py

# The page is tested in a real browser, which pip does not bring.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	|| { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	|| echo "no browser: the page's tests are skipped; for them, apt-get install chromium"

test: $(READY) browser
	@$(MAKE) --no-print-directory -j2 lint pytest

# Compiled modules are kept: tests start dozens of processes that import the package.
pytest prove: export PYTHONDONTWRITEBYTECODE :=

pytest: $(READY)
	$(BIN)/pytest -n 2 --dist loadgroup

# What takes minutes: many kills and exact resume after each, every option of every model, studies
# end to end, and that no test of an earlier tree is lost.
prove: $(READY)
	$(BIN)/pytest -m slow

bench: $(READY)
	$(BIN)/python benchmarks/drawing.py
	$(BIN)/python benchmarks/training.py

clean:
	rm -rf .venv
