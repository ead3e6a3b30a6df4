"""A package, so that one browser and one server are for all tests in it."""
