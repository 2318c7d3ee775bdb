"""Profiles of the property tests, apart from the other fixtures so that their own tests start in no time."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.database import DirectoryBasedExampleDatabase

# Deterministic by default: neither `make test` nor `.ci/run` may fail by an example that nobody has seen before.
# `make fuzz` sets RAGFORGE_HYPOTHESIS=random to look for new ones. How long an example takes says something of the
# machine, not of the program.
PROFILE = os.environ.get("RAGFORGE_HYPOTHESIS", "deterministic")
PIN_IT = "This example was drawn at random. Pin it above the test with @example(...), mend the fault, commit both."
settings.register_profile(
    "deterministic", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "random",
    derandomize=False,
    # Where CI is set, examples that failed would not be stored, and a second attempt would draw others.
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile(PROFILE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Tell whoever reads a failure of a random example to pin it."""
    report = yield
    if (
        PROFILE == "random"
        and report.when == "call"
        and report.failed
        and is_hypothesis_test(getattr(item, "obj", None))
    ):
        report.sections.append(("Property test", PIN_IT))
    return report
