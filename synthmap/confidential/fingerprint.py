"""Keyed sums that tell whether two confidential tables hold the same jobs, however they are written down."""

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB
from numpy.typing import NDArray

from synthmap.confidential.files import check_columns, read_blocks
from synthmap.confidential.table import columns_of, counts_of
from synthmap.confidential.validation import ids_of
from synthmap.geography.zones import Zones
from synthmap.spec import TableSpec


def fingerprint(table: TableSpec, segments: tuple[str, ...], key: bytes, zones: Zones | None) -> NDArray[np.uint64]:
    """Return sums over the workers of a table, equal for equal workers, else without meaning for who lacks the key.

    Order of rows, how many rows a flow has, blocks, compression, names of columns and the format change nothing. Those
    of several tables add up, modulo 2^64, to that of all of them in one.

    Parameters
    ----------
    table : TableSpec
        Read in blocks, one of them in memory at a time; confidential.
    segments : tuple of str
        Columns that split the count.
    key : bytes, shape (32,)
        Secret; whoever has it can test guesses about the table against the sums.
    zones : Zones, optional
        Of the release; only to tell a header from data. Ids are taken as they are written.

    Returns
    -------
    ndarray of uint64, shape (2 + len(segments), 2)
        Of the pairs of origin and destination without their direction; with it; with it by segment.

    Raises
    ------
    ConfidentialDataError, ConfigurationError
        As `synthmap.confidential.table.read_table`, but for what zones decide.

    Notes
    -----
    Σ count · F(origin, destination) with the pseudorandom F = AES-256 of the keyed 64-bit hashes of both ids, in two
    words modulo 2^64. Two tables that differ, by 2^t·odd in some pair, have the same sum with a probability of at most
    2^-2(64-t), t < 31 for one row: who does not know the key cannot look for such tables.

    References
    ----------
    Clarke, Devadas, van Dijk, Gassend, Suh, "Incremental multiset hash functions and their application to memory
    integrity checking", Asiacrypt 2003: MSet-Add-Hash.
    """
    columns = columns_of(table, segments)
    check_columns(table, columns.names, zones)
    # a pseudorandom function of single blocks, of which only sums leave
    encryptor = Cipher(AES(key), ECB()).encryptor()  # noqa: S305

    def words(*ends: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return np.frombuffer(encryptor.update(np.stack(ends, axis=1).tobytes()), np.uint64).reshape(-1, 2)

    sums = np.zeros((2 + len(segments), 2), np.uint64)
    for block in read_blocks(table, columns.names):
        origin, destination = (
            _hashed(ids_of(block.column(name), f"{columns.file}: column {name}"), key)
            for name in (columns.origin, columns.destination)
        )
        counts = counts_of(block, columns).astype(np.uint64)
        total = counts.sum(axis=1)
        there = words(origin, destination)
        sums[0] += total @ (there + words(destination, origin))
        sums[1] += total @ there
        if segments:
            sums[2:] += counts.T @ there
    return sums


def _hashed(ids: pa.StringArray, key: bytes) -> NDArray[np.uint64]:
    """Return a keyed hash of each id, shape (rows,); an empty one is an id like others."""
    found = pc.fill_null(ids, "").dictionary_encode()
    each = [hashlib.blake2b(one.encode(), digest_size=8, key=key).digest() for one in found.dictionary.to_pylist()]
    hashed: NDArray[np.uint64] = np.frombuffer(b"".join(each), np.uint64)[np.asarray(found.indices)]
    return hashed
