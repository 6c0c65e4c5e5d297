"""What is not there: one family of errors, which has the status 404 by its type, also after another process sent it."""

import pickle

import pytest

from ziggurat.errors import (
    CheckpointError,
    JobError,
    MissingCheckpointError,
    MissingEntryError,
    MissingJobError,
    NotThereError,
    UsageError,
    ZigguratError,
    error_of_family,
)
from ziggurat.server.errors import NotFoundError, status_of

FAMILIES = [
    (MissingJobError, JobError, "job", 10),
    (MissingCheckpointError, CheckpointError, "checkpoint", 7),
    (MissingEntryError, UsageError, "usage", 2),
]


@pytest.mark.parametrize(("missing", "family", "code", "exit_code"), FAMILIES)
def test_what_is_missing_is_of_its_old_family_too(missing, family, code, exit_code):
    error = missing("Nothing of the name is here.", received="x")
    assert isinstance(error, family)
    assert isinstance(error, NotThereError)
    assert (error.code, error.exit_code) == (code, exit_code)
    assert error.as_dict() == {
        "error": code,
        "message": "Nothing of the name is here (received: x).",
        "rule": "Nothing of the name is here.",
        "received": "x",
        "not_there": True,
    }
    assert status_of(error) == 404


@pytest.mark.parametrize("family", [JobError, CheckpointError, UsageError])
def test_words_alone_do_not_make_it_missing(family):
    error = family("There is no such thing.")
    assert status_of(error) in (400, 409)
    assert "not_there" not in error.as_dict()


@pytest.mark.parametrize(("missing", "family", "code", "exit_code"), FAMILIES)
def test_it_stays_missing_across_processes(missing, family, code, exit_code):
    error = missing("It is gone.", advice="Look.", details={"name": "best"})
    for found in (pickle.loads(pickle.dumps(error)), error_of_family(error.as_dict(), error.exit_code)):
        assert type(found) is missing
        assert (found.as_dict(), status_of(found)) == (error.as_dict(), 404)


def test_other_errors_come_back_as_before():
    assert type(error_of_family(JobError("Busy.").as_dict(), 10)) is JobError
    assert type(error_of_family(ZigguratError("Odd.").as_dict(), 1)) is ZigguratError
    assert (
        type(error_of_family({**ZigguratError("Odd.").as_dict(), "not_there": True}, 3)).__name__
        == "ConfigurationError"
    )


def test_an_address_that_is_none_is_not_there_either():
    assert status_of(NotFoundError("There is nothing at this address.")) == 404
