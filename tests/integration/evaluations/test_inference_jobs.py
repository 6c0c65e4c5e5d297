"""Predicting for many images as a job: folders, lists with labels, images that cannot be read."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from ziggurat.errors import CheckpointError, DataError, JobError, SpecError, UsageError

CLASSES = ("dark", "grey", "light")


@pytest.fixture(scope="module")
def pictures(studio):
    """Return a folder below a root with ten images, one of them damaged."""
    folder = studio.root.parent / "new"
    (folder / "more").mkdir(parents=True)
    for number in range(9):
        name = folder / ("more" if number % 2 else ".") / f"{number}.png"
        cv2.imwrite(str(name), np.full((16, 12), 28 * number, np.uint8))
    (folder / "bad.png").write_bytes(b"no image")
    return folder


def said_of(studio, model, folder, keys):
    """Return what the warm process of a model says of files: (N, 3)."""
    found = np.zeros((len(keys), 3))
    answer = studio.models.predict(model, [(key, (folder / key).read_bytes()) for key in keys], top=3)
    for place, each in enumerate(answer["predictions"]):
        for one in each["classes"]:
            found[place, one["number"]] = one["probability"]
    return found


def test_a_folder(client, studio, made, pictures):
    job = client.evaluations.create_many(made["strong"], str(pictures), top=2)
    done = client.wait(job["id"], every_s=0.1)

    assert (done["kind"], done["name"]) == ("infer", "strong on new")
    assert (done["depends_on"], done["parent"]) == ([made["strong"]], made["strong"])
    assert done["reason"] == "9 images; 1 could not be read"
    assert (done["global_step"], done["total_steps"]) == (10, 10)
    assert job["id"] in [each["id"] for each in client.evaluations.of_model(made["strong"])]

    found = client.evaluations.summary(job["id"])
    assert (found["kind"], found["count"], found["skipped"], found["split"], found["dataset"]) == (
        "infer",
        9,
        1,
        "",
        "",
    )
    assert (found["accuracy"], found["confusion"], found["per_class"], found["top5"]) == (None, [], [], None)
    (failure,) = found["failures"]
    assert failure["key"] == "bad.png"
    assert "it is no image of a known format" in failure["reason"]

    samples = client.evaluations.samples(job["id"], order="row")["samples"]
    keys = [each["key"] for each in samples]
    assert keys == ["0.png", "2.png", "4.png", "6.png", "8.png", "more/1.png", "more/3.png", "more/5.png", "more/7.png"]
    assert [each["row"] for each in samples] == [0, 1, 2, 3, 4, 6, 7, 8, 9]
    wanted = said_of(studio, made["strong"], pictures, keys)
    for each, row in zip(samples, wanted, strict=True):
        assert each["label"] is None
        assert [one["class"] for one in each["top"]] == np.argsort(-row)[:2].tolist()
        assert each["score"] == pytest.approx(row.max(), abs=1e-5)
    surest = client.evaluations.top_of_class(job["id"], 0, limit=3)
    assert [each["key"] for each in surest] == [keys[place] for place in np.argsort(-wanted[:, 0], kind="stable")[:3]]

    picture = cv2.imdecode(np.frombuffer(client.evaluations.picture(job["id"], 6), np.uint8), cv2.IMREAD_UNCHANGED)
    assert picture.shape[:2] == (16, 12)
    assert (picture == 28).all()
    with pytest.raises(UsageError, match="is of no sample that was predicted for"):
        client.evaluations.picture(job["id"], 5)
    client.delete(job["id"])


def test_a_list_with_labels(client, studio, made, source):
    files = sorted(path.relative_to(source).as_posix() for path in source.rglob("*.png"))[::6]
    labels = [CLASSES.index(name.split("/")[0]) for name in files]
    text = [f"{files[0]} {labels[0]}", f"{files[1]}\t{CLASSES[labels[1]]}"]
    text += [f"{name} {label}" for name, label in zip(files[2:-1], labels[2:-1], strict=True)] + [files[-1]]
    lines = studio.root.parent / "list.txt"
    lines.write_text("\n".join(text))

    job = client.evaluations.create_many(made["strong"], str(lines), image_folder=str(source), checkpoint="best")
    client.wait(job["id"], every_s=0.1)

    chosen = said_of(studio, made["strong"], source, files).argmax(axis=1)
    found = client.evaluations.summary(job["id"])
    assert found["accuracy"] == pytest.approx((chosen == labels)[:-1].mean())
    assert np.sum(found["confusion"]) == len(files) - 1
    unlabelled = client.evaluations.samples(job["id"], label=-1)
    assert [each["key"] for each in unlabelled["samples"]] == [files[-1]]
    wrong = client.evaluations.samples(job["id"], only="wrong")
    assert wrong["total"] == int((chosen != labels)[:-1].sum())
    client.delete(job["id"])


def test_a_label_that_is_no_class_fails_the_job_with_its_line(client, studio, made):
    lines = studio.root.parent / "wrong.txt"
    lines.write_text("a.png 0\nb.png 7\n")

    job = client.evaluations.create_many(made["strong"], str(lines))

    with pytest.raises(JobError, match=r"`7` in .*wrong\.txt, line 2 is no class .* from 0 to 2"):
        client.wait(job["id"], every_s=0.1)
    assert client.job(job["id"])["exit_code"] == DataError.exit_code
    with pytest.raises(JobError, match="of kind infer and failed"):
        client.evaluations.summary(job["id"])
    client.delete(job["id"])


def test_a_limit(client, made, pictures):
    job = client.evaluations.create_many(made["weak"], str(pictures), limit=2)
    client.wait(job["id"], every_s=0.1)

    assert client.evaluations.summary(job["id"])["count"] == 2
    client.delete(job["id"])


def test_paths_outside_of_the_roots_are_refused(client, made, pictures):
    for source, options in (("/etc", {}), (str(pictures), {"image_folder": "/etc"}), ("new", {})):
        with pytest.raises(UsageError, match="is in no folder that is allowed in this studio"):
            client.evaluations.create_many(made["strong"], source, **options)


def test_numbers_out_of_range_are_refused(studio, client, made, pictures):
    with pytest.raises(SpecError, match="top"):
        studio.evaluations.create_many(made["strong"], str(pictures), top=6)
    with pytest.raises(CheckpointError):
        client.evaluations.create_many(made["strong"], str(pictures), checkpoint="gone")


def test_evaluations_have_their_pictures_in_the_data_set(client, evaluated):
    with pytest.raises(JobError, match="are not known: its dataset is gone"):
        client.evaluations.picture(evaluated["strong"], 0)


def test_an_operating_point_decides_for_each_image(client, studio, made, pictures):
    scores = said_of(studio, made["strong"], pictures, ["0.png", "2.png", "4.png", "6.png", "8.png"]).max(axis=1)
    threshold = float(scores.min() + scores.max()) / 2
    validated = client.wait(client.evaluations.create(made["strong"], split="val")["id"], every_s=0.1)
    client.models.set_operating_point(made["strong"], threshold, evaluation=validated["id"])
    try:
        job = client.wait(client.evaluations.create_many(made["strong"], str(pictures))["id"], every_s=0.1)
        measured = client.wait(client.evaluations.create(made["strong"], split="val")["id"], every_s=0.1)
    finally:
        client.models.clear_operating_point(made["strong"])

    point = client.evaluations.summary(job["id"])["operating_point"]
    assert (point["thresholds"], point["used"], point["problem"]) == ({"confidence": threshold}, True, "")
    samples = client.evaluations.samples(job["id"])["samples"]
    decided = [each["decision"]["number"] for each in samples]
    assert decided == [each["predicted"] if each["score"] >= threshold else None for each in samples]
    assert len({number is None for number in decided}) == 2
    assert "decision" not in client.evaluations.samples(measured["id"])["samples"][0]
