"""Profiles of the property tests, apart from the other fixtures so that their own tests start in no time."""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.database import DirectoryBasedExampleDatabase

# Deterministic unless asked for: neither `make test` nor `.ci/run` may fail by an example that nobody has seen before.
# `make test-all` sets RAGFORGE_HYPOTHESIS=long, `make fuzz` random, to look for new ones. How long an example takes
# says something of the machine, not of the program.
PROFILE = os.environ.get("RAGFORGE_HYPOTHESIS", "short")
FEW_EXAMPLES = 20
"""Examples of each property in `make test`, whatever number it asks for."""
PIN_IT = "This example was drawn at random. Pin it above the test with @example(...), mend the fault, commit both."
settings.register_profile("long", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("short", settings.get_profile("long"), max_examples=FEW_EXAMPLES)
settings.register_profile(
    "random",
    settings.get_profile("long"),
    derandomize=False,
    # Where CI is set, examples that failed would not be stored, and a second attempt would draw others.
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
)
settings.load_profile(PROFILE)


def shortened(wanted: settings) -> settings:
    """Return settings with no more examples than the profile allows, though a property asks for more."""
    allowed = FEW_EXAMPLES if PROFILE == "short" else wanted.max_examples
    return settings(wanted, max_examples=min(allowed, wanted.max_examples))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hold properties with a number of examples of their own to the profile."""
    for item in items:
        test: Any = getattr(item, "obj", None)
        if is_hypothesis_test(test):
            test = getattr(test, "__func__", test)
            test._hypothesis_internal_use_settings = shortened(test._hypothesis_internal_use_settings)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
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
