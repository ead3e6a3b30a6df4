"""The checks behind `python tools/house.py`."""
