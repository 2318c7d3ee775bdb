import time

from courier.retry import Unavailable, with_retries


def test_a_call_that_recovers_is_retried():
    answers = [Unavailable(), Unavailable(), "delivered"]

    def call():
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    start = time.monotonic()
    assert with_retries(call) == "delivered"
    assert time.monotonic() - start < 1.0
