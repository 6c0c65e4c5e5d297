"""The splits of the source stand, and what it does not have is taken out of training."""

from small_datasets_for_checks import catalogue_of, sample

from ziggurat.datasets.splitting import SplitRule, assign_splits


def assigned(tmp_path, given, **options):
    """Assign samples that the source put into ``given`` splits, with two classes in turn."""
    samples = [sample(f"{n:03}.jpg", n % 2, split=split) for n, split in enumerate(given)]
    with catalogue_of(tmp_path / "scan.sqlite", samples) as catalogue:
        return assign_splits(catalogue, SplitRule(**options))


def test_what_the_source_says_stands(tmp_path):
    given = ["train"] * 10 + ["val"] * 4 + ["test"] * 2
    assert assigned(tmp_path, given, test_share=0.5).splits.tolist() == [0] * 10 + [1] * 4 + [2] * 2


def test_validation_is_taken_from_training_and_test_stays(tmp_path):
    splits = assigned(tmp_path, ["train"] * 20 + ["test"] * 6, val_share=0.2).splits
    assert (splits[20:] == 2).all()
    assert [int((splits[start:20:2] == 1).sum()) for start in (0, 1)] == [2, 2]


def test_test_is_taken_from_training_where_a_share_is_asked_for(tmp_path):
    given = ["train"] * 40 + ["val"] * 5
    assert assigned(tmp_path, given, test_share=0.1).counts() == {"train": 36, "val": 5, "test": 4}
    (tmp_path / "scan.sqlite").unlink()
    assert assigned(tmp_path, given).counts() == {"train": 40, "val": 5}


def test_nothing_said_at_all_is_a_share(tmp_path):
    assert assigned(tmp_path, [""] * 40).counts() == {"train": 30, "val": 10}


def test_samples_without_a_word_join_training(tmp_path):
    splits = assigned(tmp_path, ["", "val", "train", ""]).splits
    assert splits.tolist() == [0, 1, 0, 0]


def test_limits_of_classes_leave_the_sources_validation_alone(tmp_path):
    assignment = assigned(tmp_path, ["train"] * 40 + ["val"] * 20, max_per_class=15)
    assert assignment.counts() == {"train": 10, "val": 20}


def test_a_source_without_training_is_warned_of(tmp_path):
    assignment = assigned(tmp_path, ["test"] * 5)
    assert assignment.counts() == {"test": 5}
    assert assignment.warnings == ["No sample is in training."]
