"""A TrainingJob near the API server's limit: it is refused in words, and other jobs do not notice."""

import pytest

from support.operator.stage import Stage, condition, template

pytestmark = pytest.mark.integration


async def test_a_template_of_400_kb_is_refused_with_its_size_and_others_go_on(stage: Stage) -> None:
    large = template()
    large["spec"]["containers"][0]["args"] = ["x" * 400_000]
    await stage.submit("large", template=large)
    await stage.submit("other")
    status = (await stage.until("a verdict", lambda s: bool(condition(s, "Valid")), name="large"))["status"]
    accepted = condition(status, "Valid")
    assert (accepted["status"], accepted["reason"]) == ("False", "SpecTooLarge")
    assert "262144" in accepted["message"]
    await stage.told("SpecTooLarge")
    await stage.phase("Queued", name="other")
    await stage.submit(
        "huge",
        template={**large, "spec": {"containers": [{**large["spec"]["containers"][0], "args": ["x" * 1_400_000]}]}},
    )
    await stage.submit("later")
    await stage.phase("Queued", name="later")
    huge = await stage.until("a verdict", lambda s: bool(condition(s, "Valid")), name="huge")
    assert condition(huge["status"], "Valid")["reason"] == "SpecTooLarge"
