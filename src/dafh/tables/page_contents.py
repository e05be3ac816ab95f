"""What is in the pages of a Parquet file that could take far more memory than the page itself."""

from typing import NamedTuple

from dafh.tables.thrift import DamagedError, unsigned

_CODECS = {0: None, 1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}
# As the format has it: blocks of 128 values or a multiple, each of several miniblocks of 32 values or a multiple.
_LARGEST_BLOCK, _LEAST_VALUES = 2**16, 32
_WIDEST = 64  # Bits of a length.


class Packed(NamedTuple):
    """The body of a page as it is in the file."""

    content: bytes
    codec: int
    unpacked: int
    """Bytes, as the header says."""

    def read(self) -> bytes:
        """Unpack it."""
        import pyarrow

        if self.codec not in _CODECS:
            raise DamagedError("a codec that cannot be checked")
        name = _CODECS[self.codec]
        if name is None:
            return self.content
        return bytes(pyarrow.decompress(self.content, self.unpacked, codec=name, asbytes=True))


def longest_text(content: bytes, n_texts: int) -> int:
    """Return the bytes of the longest text in a dictionary, which has a length of four bytes before each."""
    longest = at = 0
    for _ in range(n_texts):
        length = int.from_bytes(content[at : at + 4], "little")
        longest, at = max(longest, length), at + 4 + length
    if at > len(content):
        raise DamagedError("texts beyond the end of their page")
    return longest


def check_lengths(content: bytes, n_values: int, *, has_prefixes: bool) -> None:
    """Refuse more lengths than a page has values: Arrow unpacks all of them at once, and ten bytes can say a billion.

    Parameters
    ----------
    content : bytes
        Of a page of texts that have their lengths before them, as differences.
    n_values : int
    has_prefixes : bool
        Whether there are two sorts of lengths: of what a text begins with, and of the rest.
    """
    at = 0
    try:
        for _ in range(2 if has_prefixes else 1):
            at = _behind_lengths(content, at, n_values)
    except IndexError:
        raise DamagedError("lengths beyond the end of their page") from None


def _behind_lengths(content: bytes, at: int, n_values: int) -> int:
    """Return where the lengths end."""
    block, at = unsigned(content, at)
    n_parts, at = unsigned(content, at)
    left, at = unsigned(content, at)
    _, at = unsigned(content, at)  # The first length.
    in_part = block // max(n_parts, 1)
    if left > n_values or not 1 <= block <= _LARGEST_BLOCK or in_part % _LEAST_VALUES or in_part * n_parts != block:
        raise DamagedError("more lengths than there are texts")
    left -= 1
    while left > 0:
        _, at = unsigned(content, at)  # The smallest difference.
        widths, at = content[at : at + n_parts], at + n_parts
        for width in widths:
            if width > _WIDEST:
                raise DamagedError("a length of too many bits")
            if left <= 0:
                break
            at, left = at + width * in_part // 8, left - in_part
        if at > len(content):
            raise DamagedError("lengths beyond the end of their page")
    return at
