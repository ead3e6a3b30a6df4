"""`python -m disentwine`, the command where the installed script is not on the path."""

from disentwine.cli import main

if __name__ == "__main__":
    main()
