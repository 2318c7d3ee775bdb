"""Which commands run tests, and the outcome that their output reports."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.suite_runs import last_program, runs_tests, suite_run

RUNS = """
pytest
.venv/bin/python -m pytest -x tests
python3 -m unittest discover
uv run pytest -q
cd sub && pytest -q 2>&1 | tail -5
CI=1 timeout 60 pytest | tee out.txt
(cd a; npm test) || true
npm run test:unit -- --watch=false
make -j2 test | grep -v ok
make check
cargo test --all 2>&1 | tail
go test ./...
bash -c "set -o pipefail; pytest | tail -3"
./run_tests.sh | tail
mvn -q test
./gradlew test
bundle exec rspec
node_modules/.bin/vitest run
"""
RUNS_NONE = """
cat pytest.log
grep -rn pytest .
pip install pytest
tail -5 test.log
git commit -m "run pytest"
make
npm install
echo "1 failed"
ls tests
python app.py
"""


@pytest.mark.parametrize("command", RUNS.strip().split("\n"))
def test_a_test_program_is_known_however_it_is_started(command: str) -> None:
    assert runs_tests(command)


def test_lines_of_a_script_are_commands() -> None:
    assert runs_tests("set -e\npytest \\\n  -q tests\necho done")


@pytest.mark.parametrize("command", RUNS_NONE.strip().split("\n"))
def test_its_name_alone_is_no_run(command: str) -> None:
    assert not runs_tests(command)


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("F..\nFAILED a.py::b\n=== 1 failed, 673 passed in 3.21s ===", "1 failed, 673 passed"),
        ("1 failed, 2 passed, 1 xfailed in 0.12s", "1 failed, 2 passed"),
        ("=== 2 errors in 0.3s ===", "2 errors"),
        ("!!! Interrupted: 1 error during collection !!!\n1 error in 0.08s", "1 error"),
        ("Ran 15 tests in 0.003s\n\nFAILED (failures=1, errors=2)", "1 failed, 2 errors"),
        ("test result: ok. 3 passed; 0 failed\ntest result: FAILED. 2 passed; 1 failed", "1 failed, 2 passed"),
        ("--- FAIL: TestOne (0.00s)\n    a_test.go:5: bad\nFAIL\nFAIL\texample.com/a\t0.2s", "1 failed"),
        ("FAIL\texample.com/a [build failed]", "failed"),
        ("Test Suites: 1 failed, 1 total\nTests:       2 failed, 5 passed, 7 total", "2 failed, 5 passed"),
        (" Test Files  1 failed (1)\n      Tests  1 failed | 5 passed (6)\n   Duration  1.20s", "1 failed, 5 passed"),
        ("  5 passing (30ms)\n  1 failing\n\n  1) adds", "1 failed, 5 passed"),
        ("10 examples, 1 failure, 2 pending", "1 failed"),
        ("10 runs, 20 assertions, 1 failures, 2 errors, 0 skips", "1 failed, 2 errors"),
        ("Tests: 10, Assertions: 20, Failures: 1.", "1 failed"),
        ("[ERROR] Tests run: 10, Failures: 1, Errors: 0, Skipped: 0", "1 failed"),
        ("90% tests passed, 1 tests failed out of 10", "1 failed"),
        ("Failed!  - Failed:     1, Passed:     5, Duration: 5 ms - Foo.dll (net8.0)", "1 failed, 5 passed"),
        ("00:01 +5 -1: Some tests failed.", "1 failed, 5 passed"),
        ("ok 1 - a\nnot ok 2 - b\n# pass 1\n# fail 1", "1 failed, 1 passed"),
        ("\x1b[31m=== \x1b[1m1 failed\x1b[0m, \x1b[32m3 passed\x1b[0m in 1s ===", "1 failed, 3 passed"),
        ("10 tests completed, 1 failed", "1 failed"),
        ("Executed 10 tests, with 1 failure (0 unexpected) in 0.005 (0.006) seconds", "1 failed"),
        ("FAILED | 3 passed | 1 failed (5ms)", "1 failed, 3 passed"),
    ],
)  # fmt: skip
def test_a_failure_is_read_from_the_summary(output: str, words: str) -> None:
    found = suite_run("pytest | tail", output)
    assert found is not None and not found.passed
    assert found.words == words


@pytest.mark.parametrize(
    ("output", "words"),
    [
        ("=== 674 passed, 2 warnings in 3.21s ===", "674 passed"),
        ("tests/a.py::test_2_failed PASSED\nRetried after 3 failures, then went on.\n5 passed in 0.1s", "5 passed"),
        ("test result: ok. 3 passed; 0 failed; 0 ignored", "3 passed"),
        ("Tests:       5 passed, 5 total", "5 passed"),
        ("the server reported 2 errors in the log\n7 passed in 1s", "7 passed"),
        ("ERROR: a log line of the program under test\n1 passed in 1s", "1 passed"),
    ],
)
def test_a_passing_run_is_not_doubted(output: str, words: str) -> None:
    found = suite_run("pytest | tail", output)
    assert found is not None and found.passed
    assert found.words == words


@pytest.mark.parametrize("output", ["", "no tests ran in 0.01s", "a.py:1: 3 failed attempts of logging in"])
def test_without_a_summary_nothing_is_known(output: str) -> None:
    assert suite_run("pytest | tail", output) is None
    assert suite_run("cat log", "1 failed in 1s") is None


@pytest.mark.parametrize(
    ("command", "program"), [("pytest | tail -5", "tail"), ("pytest; true", "true"), ("cd a && pytest -q", "")]
)
def test_the_status_may_be_another_programs(command: str, program: str) -> None:
    assert last_program(command) == program
