"""What is said of results: a module a topic, whose functions take numbers and codes and return text."""
