"""Small tables and files for tests."""


def written(folder, content, name="people.csv"):
    """Path of a new file with some content."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path
