"""What an audit's page says, and the numbers in its tables."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from array_audits import made_audit, with_scores
from audits import agreeing, make_findings

from labelproof.audit.findings import Estimate
from labelproof.report.audit import write_audit_page
from labelproof.report.audit_words import (
    Pair,
    commands,
    confused_most,
    confusion_counts,
    confusions,
    finding,
    remark,
)
from labelproof.verbs.summaries import describe_audit


def test_the_finding_says_how_many_of_how_many_and_how_sure() -> None:
    many, few = make_findings(1000, 4)[0], make_findings(100, 4)[0]
    flagged = len(many.suspects)
    none = with_scores(few, np.full(100, 0.1))
    one = with_scores(few, np.where(np.arange(100) == 7, 0.8, 0.1))
    hundred = "About 100 of 1,000 labels"
    sure, seen = (0.1, 0.08, 0.12), (0.1, 0.02, 0.12)
    likely = "more likely wrong than right"
    for findings, rate, options, first, second in (
        (many, sure, {}, f"{hundred} are wrong: 10.0% (8.0% to 12.0%).", f"each is {likely}."),
        (many, seen, {"seen": True}, f"{hundred} may be wrong: 10.0% (2", f"class for {flagged}."),
        (agreeing(many, 0.69), sure, {}, f"{hundred} may be wrong: 10.0%", "but may be right."),
        (many, (0.1, 0, 0.6), {}, f"{hundred} may be wrong: 10.0% (0", f"each is {likely}."),
        (agreeing(none, 0.5), (0.5, 0.1, 0.6), {}, "About 50 of 100 labels may be wrong", "No si"),
        (none, (0.02, 0.001, 0.05), {}, "About 2 of 100 labels are", f"single label is {likely}."),
        (none, (0.001, 0, 0.03), {}, "No label looks wrong: by the", "0.1% (0.0% to 3.0%) of 100"),
        (one, (0.01, 0.001, 0.05), {}, "About 1 of 100 labels is", f"is flagged: it is {likely}"),
    ):
        said = finding(replace(findings, noise_rate=Estimate(*rate)), **options)
        assert said.startswith(first)
        assert second in said


def test_where_little_was_learned_no_suspect_is_said_to_be_wrong() -> None:
    findings, _ = make_findings(1000, 4)
    # A model that agrees with half of the labels is a good one where the other half is wrong.
    half = replace(findings, noise_rate=Estimate(0.5, 0.48, 0.52))
    assert "more likely wrong than right" in finding(agreeing(half, 0.5))
    # Just where the warning begins, and not before.
    audit, _ = made_audit(100, ("a", "b"))
    for agreed in (0.5, 0.69, 0.7, 0.9):
        low = replace(audit, findings=agreeing(audit.findings, agreed))
        said, warned = finding(low.findings), remark("caution", low)
        assert ("more likely wrong than right" in said) == (not warned) == (agreed >= 0.7)
        assert not warned or f"agrees with only {agreed:.0%} of the labels" in warned


@pytest.mark.parametrize("predictions", ["cross-validation", "given"])
def test_command_and_page_say_it_as_carefully(predictions: str, tmp_path: Path) -> None:
    audit, samples = made_audit(100, ("a", "b"))
    audit = replace(audit, method={"predictions": predictions})
    low = replace(audit, findings=agreeing(audit.findings, 0.5))
    for each, careful in ((audit, False), (low, True)):
        page = write_audit_page(tmp_path / "page.html", each, samples)
        for said in (describe_audit(each, tmp_path), page.read_text(encoding="utf-8")):
            assert ("flagged, but may be right" in said) == careful
            assert ("more likely wrong than right" in said) != careful


def test_classes_that_are_hardly_judged_or_predicted_are_named() -> None:
    audit, _ = made_audit(40, ("a", "rare <b>", "none"))
    given = np.zeros(40, dtype=np.int64)
    enough = replace(audit, findings=replace(audit.findings, given=given))
    assert remark("hardly_judged", enough) == ""
    given = given.copy()
    given[:3] = 1
    small = replace(audit, findings=replace(audit.findings, given=given))
    assert "are unreliable: rare <b> (3)." in remark("hardly_judged", small)
    assert remark("hardly_judged", small) in remark("limits", small)
    assert not remark("limits", enough).endswith(" ")
    audit, _ = made_audit(40, ("often", "rare <b>"))

    def caution(labelled: int, predicted: int) -> str:
        """What is said if a class has so many labels and predictions, and half of all is wrong."""
        given, first = (np.repeat([0, 1], [40 - n, n]) for n in (labelled, predicted))
        rate, likeliest = Estimate(0.5, 0.5, 0.5), first[:, None].astype(np.int32)
        changed = {"given": given, "likeliest": likeliest, "noise_rate": rate}
        return remark("caution", replace(audit, findings=replace(audit.findings, **changed)))

    assert caution(15, 2) == ""
    assert "rare <b> (1 predicted, 15 labelled)" in caution(15, 1)
    assert caution(9, 0) == ""


def test_the_method_is_said_as_far_as_it_is_known() -> None:
    audit, _ = made_audit(20, ("a", "b"))
    parts = {"folds": 2, "network": "cnn4", "loss": "gce(q=0.7)", "epochs": 3}
    for predictions, more, how, judge in (
        ("cross-validation", parts, "in 2 folds (cnn4, loss gce(q=0.7), 3 epochs).", "network"),
        ("run", {"network": "mlp"}, " was judged by the network of one run (mlp).", "network"),
        ("given", {}, "class probabilities that were made elsewhere.", "model"),
        ("given", {"noise": "symmetric:0.2"}, "to the labels first (symmetric:0.2).", "model"),
        ("given", {"noise": None}, "class probabilities that were made elsewhere.", "model"),
    ):
        judged = replace(audit, method={"predictions": predictions, **more})
        assert remark("how", judged).endswith(how)
        assert f"what the {judge} cannot tell apart" in remark("limits", judged)
        assert ("memorised" in remark("limits", judged)) == (predictions == "run")
    assert remark("after_review", audit) == ""
    reviewed = replace(audit, options={"labels": "reviewed.csv"})
    assert "could not find" in remark("after_review", reviewed)
    assert remark("after_review", reviewed) in remark("limits", reviewed)


def test_what_to_do_next_can_be_pasted_into_a_shell() -> None:
    audit, _ = made_audit(20, ("a", "b"))
    audit = replace(audit, data="my data/t.csv", options={"label": "the kind"})
    lines = [line for _, line in commands(audit, Path("an audit"))]
    assert lines == [
        "labelproof review 'an audit'",
        "labelproof review 'an audit' --export reviewed.csv",
        "labelproof fit 'my data/t.csv' --labels reviewed.csv --label 'the kind'",
    ]
    assert len(commands(replace(audit, kind="unknown"), Path("a"))) == 2
    for before, after in (
        ("reviewed", "reviewed-2"),
        ("reviewed-2", "reviewed-3"),
        ("x", "reviewed"),
    ):
        again = replace(audit, options={"labels": f"/data/{before}.csv"})
        assert f"--export {after}.csv" in commands(again, Path("a"))[1][1]
        assert f"--labels {after}.csv" in commands(again, Path("a"))[2][1]
    known = replace(audit, data="cifar10", options={"data_root": "/my data"})
    assert commands(known, Path("a"))[-1][1].endswith("--data-root '/my data'")


def test_the_confusions_count_suspects_and_the_largest_come_first() -> None:
    findings, _ = make_findings(2000, 5)
    counts = confusion_counts(findings)
    np.testing.assert_array_equal(counts.sum(axis=0), np.bincount(findings.given, minlength=5))
    assert counts.sum() - np.trace(counts) == len(findings.suspects)
    findings, _ = make_findings(5000, 30)
    pairs = confusions(findings, confusion_counts(findings))
    sizes = np.bincount(findings.suggested, minlength=30)
    about = findings.transition * sizes[:, None] * (1 - np.eye(30))
    largest = np.sort(about.ravel())[::-1][: len(pairs)]
    assert [pair.about.value for pair in pairs] == pytest.approx(largest)
    assert all(pair.about.low <= pair.about.value <= pair.about.high for pair in pairs)
    one = Estimate(0.1, 0.0, 0.2)
    pairs = [Pair(0, given, Estimate(9.6 / given, 1, 20), one, suspects=1) for given in range(1, 5)]
    text = confused_most(pairs, ["cat", "dog", "L" * 200, "elk", "fox"])
    assert text == (
        f"The most frequent confusions: cat labelled dog, about 10; cat labelled {'L' * 39}…, "
        "about 5; cat labelled elk, about 3."
    )
    assert confused_most([], ["cat"]) == ""
