"""Logs as JSON."""

import json
import logging

from synergy_service.logs import JsonFormatter


def test_a_log_record_is_one_line_of_json_with_its_extras_and_traceback() -> None:
    record = logging.makeLogRecord({"msg": "run %d", "args": (3,), "levelname": "INFO", "name": "x", "job": "team/j"})
    entry = json.loads(JsonFormatter().format(record))
    assert (entry["message"], entry["level"], entry["logger"], entry["job"]) == ("run 3", "INFO", "x", "team/j")
    try:
        raise ValueError("broken\nin two lines")
    except ValueError as error:
        record.exc_info = (type(error), error, error.__traceback__)
    text = JsonFormatter().format(record)
    assert "\n" not in text
    assert "broken" in json.loads(text)["traceback"]
