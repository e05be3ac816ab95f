"""What is kept of a trial that went wrong: what the command said, and how its files differ from what they should be."""

from pathlib import Path


def differences(found, wanted):
    """Name files that are missing, that should not be there, and that hold something else (None: half a file)."""
    both = sorted(set(found) & set(wanted))
    parts = {
        "missing": sorted(set(wanted) - set(found)),
        "not expected": sorted(set(found) - set(wanted)),
        "different": [f"{name}{' (half)' * (found[name] is None)}" for name in both if found[name] != wanted[name]],
    }
    return {what: names for what, names in parts.items() if names}


def keep(folder, title, runs, files):
    """Write a record into a folder, and return its path.

    Parameters
    ----------
    folder : Path
    title : str
    runs : dict of a name and how a run ended
    files : dict of a name and what `differences` has found
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{''.join(letter if letter.isalnum() else '-' for letter in title)[:100]}.txt"
    lines = [title, ""]
    for name, ended in runs.items():
        lines += [f"== {name}: exit code {ended.code}, {ended.changes} changes, {ended.n_bytes} bytes =="]
        lines += ["-- standard error --", ended.errors, "-- standard output --", ended.output[-20_000:], ""]
    lines += [f"== {name} ==\n{found}" for name, found in files.items()]
    path.write_text("\n".join(lines))
    return path
