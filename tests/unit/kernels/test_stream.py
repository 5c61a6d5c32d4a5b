import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES256
from cryptography.hazmat.primitives.ciphers.modes import CTR

from synthmap.kernels.stream import Stream, secure_stream, seeded_stream


@pytest.mark.parametrize("destination", [0, 7, 2**63 + 11])
def test_words_are_aes_in_counter_mode_from_the_destination_on(destination):
    stream = Stream(key=bytes(range(32)), private=False)
    encryptor = Cipher(AES256(stream.key), CTR(destination.to_bytes(8, "big") + bytes(8))).encryptor()
    assert np.array_equal(stream.words(destination, 600), np.frombuffer(encryptor.update(bytes(4800)), "<u8"))


def test_a_longer_stream_begins_with_the_shorter():
    stream = seeded_stream(3)
    assert np.array_equal(stream.words(5, 1000)[:10], stream.words(5, 10))


def test_a_batch_is_each_destination_s_own_stream():
    stream = seeded_stream(3)
    counts = np.array([3, 2, 0, 1, 5])
    words = stream.batch(np.array([9, 4, 2, 3, 8]), counts)
    each = [stream.words(d, int(count)) for d, count in zip([9, 4, 2, 3, 8], counts, strict=True)]
    assert np.array_equal(words, np.concatenate(each))
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
