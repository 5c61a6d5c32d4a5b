import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import ECB

from synthmap.kernels.stream import Stream, secure_stream, seeded_stream


def test_words_are_aes_of_destination_and_block():
    stream = Stream(key=bytes(range(32)), private=False)
    blocks = b"".join((7).to_bytes(8, "big") + block.to_bytes(8, "big") for block in range(3))
    encryptor = Cipher(AES256(stream.key), ECB()).encryptor()  # noqa: S305
    assert np.array_equal(stream.words(7, 6), np.frombuffer(encryptor.update(blocks), "<u8"))


def test_a_longer_stream_begins_with_the_shorter():
    stream = seeded_stream(3)
    assert np.array_equal(stream.words(5, 1000)[:10], stream.words(5, 10))


def test_a_batch_is_each_destination_s_own_stream():
    stream = seeded_stream(3)
    words = stream.batch(np.array([9, 4]), np.array([3, 2]))
    assert np.array_equal(words, np.concatenate([stream.words(9, 3), stream.words(4, 2)]))
    assert stream.batch(np.array([], np.int64), np.array([], np.int64)).size == 0


def test_destinations_do_not_share_words():
    stream = seeded_stream(3)
    words = stream.batch(np.arange(2000), np.full(2000, 20))
    assert np.unique(words).size == words.size


def test_secure_streams_differ_and_hide_their_key():
    one, other = secure_stream(), secure_stream()
    assert one.key != other.key
    assert one.private
    assert not seeded_stream(1).private
    assert one.key.hex() not in repr(one)
    assert repr(one.key) not in repr(one)
