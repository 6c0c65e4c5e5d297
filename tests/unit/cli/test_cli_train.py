"""``train``, ``resume`` and ``stop`` start a worker in its own process group and hand on what happens to it."""

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest
from dataset_folders import pets
from studio_stand_in import studio_stand_in

from tests.waiting import wait_until
from ziggurat.cli.here_or_studio import train
from ziggurat.cli.main import root
from ziggurat.cli.spec import flag_of
from ziggurat.specs import RENAMED, TrainSpec, describe_fields, load_train_spec
from ziggurat.workspace.fine_tuning import fine_tune_fields

FLAGS = ("--network", "mlp", "--data", "digits", "--epochs", "3")


def test_one_declaration_every_field_of_the_spec_is_a_flag():
    options = {option.name: option for option in train.params}
    for field in describe_fields(TrainSpec):
        if field.is_top:
            option = options.pop(field.path)
            assert option.opts[0] == flag_of(field)
            assert option.help.startswith(field.help)
    backend = next(option for option in train.params if option.name == "backend")
    assert backend.opts == ["--backend", "--framework"], "what people say instead"
    own = {"spec", "out", "assignments", "recipe", "fine_tune", "test_batch", "dry_run", "detach", "json", "debug"}
    own |= {"studio", "server", "token", "token_file", "dataset", "model", "checkpoint", "project", "tags", "notes"}
    own |= {"priority"}
    former = {name for name in RENAMED["train"] if "." not in name}
    assert set(options) == own | former, "a flag that is no field"
    assert all(options[name].hidden for name in former)


def test_help_groups_the_flags_as_the_spec_does(ziggurat):
    text = ziggurat("train", "--help").out
    for heading in dict.fromkeys(field.group for field in describe_fields(TrainSpec)):
        assert f"\n{heading}:\n" in text
    assert "--batch-size N" in text
    assert "One of fixed, step, multistep," in " ".join(text.split())


def test_several_nodes_are_for_a_studio(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--framework", "torch", "--nodes", "2", "--out", tmp_path / "job")
    assert (answer.code, (tmp_path / "job").exists()) == (3, False)
    assert "A training on 2 nodes needs a studio with a cluster; here is one machine." in answer.err
    assert "Submit it with `ziggurat train --studio`" in answer.err


def test_a_dry_run_prints_the_spec(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--set", "schedule.gamma=0.5", "--dry-run", "--out", tmp_path / "job")
    assert answer.code == 0
    assert answer.content["epochs"] == 3
    assert answer.content["schedule"]["gamma"] == 0.5
    assert not (tmp_path / "job").exists()


def test_a_recipe_fills_in_what_was_not_given(ziggurat, tmp_path):
    chosen = ziggurat("train", "--recipe", "--data", "digits", "--dry-run")
    assert chosen.content["schedule"]["policy"] == "cosine"
    assert chosen.content["batch_size"] == 32
    assert "Recipe: " in chosen.err
    assert "batch_size" in chosen.err

    words = ("--batch-size", "8", "--set", "schedule.policy=fixed", "--network", "mlp", "--framework", "null")
    given = ziggurat("train", "--recipe", "--data", "digits", *words, "--dry-run")
    assert (given.content["batch_size"], given.content["network"]["name"]) == (8, "mlp")
    assert (given.content["backend"], given.content["schedule"]["policy"]) == ("null", "fixed")
    assert given.content["early_stopping"]["tag"] == "validation_accuracy"

    (tmp_path / "spec.json").write_text('{"kind": "train", "network": "mlp", "data": "digits", "epochs": 7}')
    from_file = ziggurat("train", tmp_path / "spec.json", "--recipe", "--dry-run")
    assert (from_file.content["epochs"], from_file.content["batch_size"]) == (7, 32)


def test_data_alone_is_trained_by_the_recipe(ziggurat, tmp_path):
    asked = ziggurat("train", "--recipe", "--data", "digits", "--seed", "3", "--dry-run")
    alone = ziggurat("train", "--data", "digits", "--seed", "3", "--dry-run")
    assert (alone.code, alone.content) == (0, asked.content)
    assert alone.err.startswith("No network is given: the recommended recipe is used. ")
    assert len(alone.err.splitlines()) == 1
    tuned = ziggurat("train", "--data", "digits", "--framework", "null", "--fine-tune", "--dry-run")
    assert (tuned.content["network"]["name"], tuned.content["fine_tuning"]["frozen_epochs"]) == ("mlp", 2)
    assert "No data is given" in ziggurat("train", "--epochs", "3", "--dry-run").err
    (tmp_path / "spec.json").write_text('{"kind": "train", "data": "digits", "epochs": 7}')
    assert ziggurat("train", tmp_path / "spec.json", "--dry-run").code == 3, "a file says all"


def test_data_may_be_the_name_of_a_dataset(ziggurat, tmp_path):
    workspace = ("--workspace", tmp_path / "workspace")
    folder = pets(tmp_path / "workspace" / "datasets" / "made")
    for name in ("pets", "made", folder):
        chosen = ziggurat(*workspace, "train", "--data", name, "--dry-run")
        assert chosen.code == 0, chosen.err
        assert chosen.content["data"]["source"] == str(folder)
    assert ziggurat(*workspace, "train", "--data", "pet", "--dry-run").code == 4


def test_a_dataset_of_a_studio_is_trained_by_its_recipe(ziggurat):
    recipe = {"network": "null/mlp", "fields": {"epochs": 4}, "summary": "Perceptron: 4 epochs.", "reason": "Small."}
    made = {"jobs": [{"id": "20260101-000000-abcd", "name": "mlp on pets", "state": "queued"}], "sweep": ""}
    with studio_stand_in(lambda method, _: (201, made) if method == "POST" else (200, recipe)) as (address, asked):
        answer = ziggurat("job", "train", "--data", "my pets", "--seed", "3", "--server", address)
    assert answer.code == 0, answer.err
    assert answer.err.splitlines() == ["No network is given: the recommended recipe is used. Perceptron: 4 epochs."]
    assert [each[:2] for each in asked] == [("GET", "/datasets/my%20pets/recipe"), ("POST", "/trainings")]
    body = asked[1][2]
    assert (body["dataset"], body["spec"]["network"]["name"]) == ("my pets", "mlp")
    assert (body["spec"]["epochs"], body["spec"]["seed"]) == (4, 3)


def test_fine_tune_fills_in_what_was_not_given(ziggurat, tmp_path):
    words = ("--network", "resnet18", "--pretrained", "weights:mine", "--data", "digits", "--dry-run")
    chosen = ziggurat("train", "--fine-tune", *words)
    preset = {path: value for path, value in fine_tune_fields("momentum").items() if path.startswith("fine_tuning.")}
    assert chosen.content["fine_tuning"] == {path.partition(".")[2]: value for path, value in preset.items()}
    assert (chosen.content["learning_rate"], chosen.content["schedule"]["policy"]) == (0.05, "cosine")
    assert "Fine-tune: Trains the last layer alone" in chosen.err
    assert "fine_tuning.frozen_epochs" in chosen.err

    parts = ("--set", "fine_tuning.layer_decay=0.9", "--set", "schedule.gamma=0.5", "--optimizer", "adam")
    given = ziggurat("train", "--fine-tune", *words, *parts, "--epochs", "4")
    assert given.content["fine_tuning"] == {"frozen_epochs": 2, "backbone_rate": 0.3, "layer_decay": 0.9}
    assert (given.content["epochs"], given.content["schedule"]["policy"]) == (4, "step")
    assert given.content["learning_rate"] == 0.001

    content = {"kind": "train", "network": "mlp", "data": "digits", "fine_tuning": {"frozen_epochs": 1}, "epochs": 7}
    (tmp_path / "spec.json").write_text(json.dumps(content))
    from_file = ziggurat("train", tmp_path / "spec.json", "--fine-tune", "--recipe", "--dry-run")
    assert from_file.content["fine_tuning"] == {"frozen_epochs": 1, "backbone_rate": 0.3, "layer_decay": 0.8}
    assert (from_file.content["epochs"], from_file.content["learning_rate"]) == (7, 0.05)


def test_fine_tuning_without_a_model_is_refused(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--fine-tune", "--out", tmp_path / "job")
    assert answer.code != 0
    assert "`fine_tuning` needs a pretrained model" in answer.err
    assert not (tmp_path / "job").exists()


def test_another_optimizer_leaves_the_rate_of_a_recipe(ziggurat):
    words = ("train", "--recipe", "--data", "digits", "--network", "gan", "--dry-run")
    made = ziggurat(*words).content
    assert (made["optimizer"]["name"], made["optimizer"]["beta_1"], made["learning_rate"]) == ("adam", 0.5, 0.0002)
    assert made["early_stopping"] is None, "nothing tells when such a network is good"

    other = ziggurat(*words, "--optimizer", "sgd").content
    assert (other["optimizer"]["name"], other["learning_rate"]) == ("sgd", 0.01)


def test_a_recipe_keeps_to_what_was_given(ziggurat):
    own = ziggurat("train", "--recipe", "--data", "digits", "--framework", "null", "--dry-run").content
    assert (own["backend"], own["network"]["name"]) == ("null", "mlp"), "a network of the framework that was given"
    mistyped = ziggurat("train", "--recipe", "--data", "digits", "--framework", "nul", "--dry-run")
    assert (mistyped.code, "`null`" in mistyped.err) == (3, True)
    part = ("--set", "early_stopping.patience=3", "--set", "data.source=digits", "--framework", "null")
    filled = ziggurat("train", "--recipe", *part, "--dry-run").content
    assert (filled["early_stopping"]["tag"], filled["early_stopping"]["patience"]) == ("validation_accuracy", 3)
    whole = ziggurat("train", "--recipe", *part[2:], "--early-stopping", "validation_cost", "--dry-run").content
    assert whole["early_stopping"]["tag"] == "validation_cost"


def test_a_recipe_needs_data_that_is_there(ziggurat, tmp_path):
    assert ziggurat("train", "--recipe", "--dry-run").code == 2
    missing = ziggurat("train", "--recipe", "--data", tmp_path / "nothing")
    assert missing.code == 4
    assert "nothing" in missing.err


def test_a_test_batch_makes_no_job(ziggurat, tmp_path):
    words = ("train", "--network", "mlp", "--data", "digits", "--epochs", "2", "--test-batch", "--out", tmp_path / "j")
    shown = ziggurat(*words)
    assert shown.code == 0, shown.err
    for title in ("time", "memory", "largest batch", "suggested", "largest finite"):
        assert f"\n{title}" in f"\n{shown.out}"
    assert not (tmp_path / "j").exists()
    assert "learning_rate" not in shown.err, "the rate of the trial is not that of the job"
    assert ziggurat(*words, "--json").content["rate"]["suggested"] > 0
    refused = ziggurat("train", "--network", "mlp", "--data", tmp_path / "none", "--test-batch")
    assert refused.code == 4


def test_former_names_of_flags_are_read_with_a_notice(ziggurat, tmp_path):
    former = ("--accumulate", "2", "--average-weights=0.9", "--set", "checkpoints.keep_every_hours=3")
    answer = ziggurat("train", *FLAGS, *former, "--dry-run")
    assert (answer.content["gradient_accumulation_steps"], answer.content["ema_decay"]) == (2, 0.9)
    assert answer.content["checkpoints"]["keep_checkpoint_every_n_hours"] == 3
    for old in ("accumulate", "average_weights", "checkpoints.keep_every_hours"):
        assert f"`{old}` is named `" in answer.err

    (tmp_path / "spec.json").write_text('{"kind": "train", "network": "mlp", "data": "digits", "accumulate": 2}')
    shown = ziggurat("spec", "show", tmp_path)
    assert shown.content["gradient_accumulation_steps"] == 2
    assert "`accumulate` is named `gradient_accumulation_steps` now; the former name is still read." in shown.err
    twice = ziggurat("train", tmp_path / "spec.json", *FLAGS, "--ema-decay=0.9", "--average-weights=0.9")
    assert twice.code == 3
    assert "`average_weights` is the former name of `ema_decay`" in twice.err


def test_quarter_turns_of_no_squares_are_refused(ziggurat, tmp_path):
    oblong = ("--set", "preprocessing.size=[8,10]", "--set", "augmentation.quad_rotation=rot90")
    answer = ziggurat("train", *FLAGS, *oblong, "--out", tmp_path / "job")
    assert answer.code == 3
    assert "need square images" in answer.err
    assert "8 x 10 px" in answer.err
    assert not (tmp_path / "job").exists()


def test_a_training_that_cannot_succeed_leaves_nothing(ziggurat, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = ziggurat("train", "--network", "lenett", "--data", "digit", "--epochs", "3", "--out", "j1")
    assert wrong.code == 3
    assert "The training cannot start for 2 reasons." in wrong.err
    assert "Did you mean `lenet`" in wrong.err
    assert "Did you mean `digits`?" in wrong.err
    assert "resume" not in wrong.err
    assert not (tmp_path / "j1").exists()

    assert ziggurat("train", "--network", "lenet", "--data", "digits", "--epochs", "3", "--out", "j1").code == 0
    assert load_train_spec(tmp_path / "j1" / "spec.json").backend == "tensorflow"


def test_an_unknown_backend_is_named_before_a_job_is_made(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--backend", "tensorflo", "--out", tmp_path / "j1")
    assert answer.code == 3
    assert "`tensorflo` is not a known backend. Did you mean `tensorflow`?" in answer.err
    assert not (tmp_path / "j1").exists()


def test_an_old_spec_without_a_backend_means_what_it_meant(ziggurat, tmp_path):
    (tmp_path / "old.json").write_text('{"kind": "train", "version": 1, "network": "mlp", "data": "digits"}')
    assert ziggurat("train", tmp_path / "old.json", "--out", tmp_path / "job").code == 0
    assert load_train_spec(tmp_path / "job" / "spec.json").backend == "null"


def test_flags_change_a_spec_file(ziggurat, job):
    answer = ziggurat("train", job / "spec.json", "--epochs", "9", "--dry-run")
    assert (answer.content["epochs"], answer.content["name"]) == (9, "mine")


def test_a_training_from_flags(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--out", tmp_path / "job")
    assert answer.code == 0
    assert "tiny worker at work" in answer.out, "the worker's own output is shown"
    assert "done, attempt 1" in answer.out
    assert "step 6 of 6, epoch 3 of 3" in answer.out
    assert "cost 0.5" in answer.out
    assert answer.err.startswith(f"Job folder: {tmp_path / 'job'}\n")
    assert json.loads((tmp_path / "job" / "spec.json").read_text())["epochs"] == 3


def test_the_worker_is_told_settings_and_parent(ziggurat, tmp_path):
    out = ziggurat("--color", "never", "train", *FLAGS, "--out", tmp_path / "job").out
    assert f"tiny worker at work color=never parent={os.getpid()}" in out


def test_with_json_standard_output_is_the_final_state_alone(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--out", tmp_path / "job", "--json")
    assert answer.content["state"] == "done"
    assert answer.content["scalars"] == {"cost": 0.5}
    assert "tiny worker at work" in answer.err


def test_without_out_the_job_gets_a_folder_of_its_name(ziggurat, tmp_path):
    workspace = tmp_path / "mine"
    for _ in range(2):
        assert ziggurat("--workspace", workspace, "train", *FLAGS, "--name", "My LeNet!").code == 0
    folders = sorted(path.name for path in (workspace / "jobs").iterdir())
    assert len(folders) == 2
    assert all(name.startswith("my-lenet-20") for name in folders)


def test_a_network_file_is_taken_in(ziggurat, tmp_path):
    network = tmp_path / "net.py"
    network.write_text("class UserModel: ...\n")
    assert ziggurat("train", "--network", network, "--data", "digits", "--out", tmp_path / "job").code == 0
    content = json.loads((tmp_path / "job" / "spec.json").read_text())["network"]
    assert content == {"source": "file", "path": str(network), "text": "class UserModel: ...\n"}
    missing = ziggurat("train", "--network", tmp_path / "no.py", "--data", "digits", "--out", tmp_path / "other")
    assert missing.code == 5
    assert missing.err.startswith(f"Error: The network file {tmp_path / 'no.py'} cannot be read as Python text: ")
    assert not (tmp_path / "other").exists()


def test_a_folder_with_a_job_is_not_taken_again(ziggurat, job):
    answer = ziggurat("train", *FLAGS, "--out", job)
    assert answer.code == 10
    assert "already contains a job; a new one must get a folder of its own" in answer.err
    assert f"Go on with that one by: ziggurat resume {job}." in answer.err


def test_a_wrong_flag_is_a_spec_error(ziggurat):
    answer = ziggurat("train", *FLAGS, "--set", "schedule.gama=1")
    assert answer.code == 3
    assert answer.err == "Error: `schedule.gama` is not a field of this spec. Did you mean `gamma`?\n"


def test_a_failure_has_the_code_of_its_family_and_its_reason(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--name", "fails", "--out", tmp_path / "job")
    assert answer.code == 4
    assert "failed, attempt 1" in answer.out
    assert "reason      The data must be there (received: nothing). Bring some." in answer.out


def test_a_training_that_diverged_is_no_success(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--name", "diverges", "--out", tmp_path / "job")
    assert answer.code == 6
    assert "done, diverged, attempt 1" in answer.out
    assert "the loss rose to 8e30 at epoch 3, learning rate 1e30." in answer.out
    assert "becomes NaN: lower the learning rate" in answer.out


def test_a_killed_worker_is_an_error_that_says_how_to_go_on(ziggurat, tmp_path):
    answer = ziggurat("train", *FLAGS, "--name", "is killed", "--out", tmp_path / "job")
    assert answer.code == 10
    assert f"The worker of {tmp_path / 'job'} was killed by SIGKILL." in answer.err
    status = ziggurat("status", tmp_path / "job", "--json").content
    assert (status["state"], status["health"], status["can_resume"]) == ("failed", "lost", True)


def test_resume_goes_on_and_refuses_what_is_done(ziggurat, job):
    (job / "stop.json").write_text("an old request")
    assert ziggurat("resume", job).code == 0
    assert not (job / "stop.json").exists()
    again = ziggurat("resume", job)
    assert again.code == 10
    assert f"{job} is done; a job that is complete or under way is not started again." in again.err


def test_a_detached_job_is_watched_and_stopped_from_outside(ziggurat, tmp_path):
    folder = tmp_path / "job"
    answer = ziggurat("train", *FLAGS, "--name", "waits", "--out", folder, "--detach", "--json")
    assert answer.code == 0
    pid = answer.content["pid"]
    assert os.getpgid(pid) == pid, "a process group of its own"
    wait_until(lambda: ziggurat("status", folder, "--json").content["state"] == "running", 120)
    assert ziggurat("train", *FLAGS, "--out", folder).code == 10
    assert ziggurat("resume", folder).code == 10
    status = ziggurat("status", folder, "--json").content
    assert (status["health"], status["pid"], status["global_step"]) == ("alive", pid, 1)
    stopped = ziggurat("stop", folder, "--reason", "enough for today", "--json")
    assert stopped.content["state"] in ("stopping", "stopped")
    wait_until(lambda: ziggurat("status", folder, "--json").content["state"] == "stopped", 120)
    os.waitpid(-1, 0)  # what started the worker ends behind it
    assert ziggurat("status", folder, "--json").content["reason"] == "enough for today"
    assert "tiny worker at work" in (folder / "log.txt").read_text()
    again = ziggurat("stop", folder)
    assert again.code == 10
    assert f"{folder} is stopped; only a job that is running can be stopped." in again.err


@pytest.fixture
def shell(tmp_path, tiny_worker):
    """Start ``ziggurat`` with the tiny worker as a process of its own."""
    driver = tmp_path / "driver.py"
    driver.write_text(
        "import sys\nfrom ziggurat.cli.application import Application\nfrom ziggurat.cli.main import main\n"
        f"sys.exit(main(None, Application(worker_command=[sys.executable, {str(tiny_worker)!r}])))\n"
    )
    started = []

    def start(*words):
        command = [sys.executable, str(driver), *map(str, words)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75), (signal.SIGHUP, 75)])
def test_a_signal_lets_the_worker_save_and_end(shell, tmp_path, number, code):
    process = shell("train", *FLAGS, "--name", "waits", "--out", tmp_path / "job")
    assert "tiny worker at work" in process.stdout.readline()
    worker = psutil.Process(process.pid).children()[0]
    assert os.getpgid(worker.pid) == worker.pid
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code
    assert "Saving and stopping; press Ctrl-C again to end at once and lose what was not saved." in err
    assert "Traceback" not in err
    events = (tmp_path / "job" / "events.jsonl").read_text().splitlines()
    assert json.loads(events[-1])["reason"] == "received SIGTERM"
    assert not worker.is_running()
    assert number != signal.SIGTERM or "stopped, attempt 1" in out


def test_a_second_ctrl_c_ends_a_worker_that_does_not_listen(shell, tmp_path, tiny_worker):
    tiny_worker.write_text(tiny_worker.read_text().replace("if asked or", "if"))
    process = shell("train", *FLAGS, "--name", "waits", "--out", tmp_path / "job")
    assert "tiny worker at work" in process.stdout.readline()
    worker = psutil.Process(process.pid).children()[0]
    process.send_signal(signal.SIGINT)
    assert "Saving and stopping" in [process.stderr.readline() for _ in range(2)][-1]
    assert worker.is_running()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert not worker.is_running()


def test_train_is_among_the_verbs():
    assert [verb.name for verb in root.verbs()][:3] == ["train", "resume", "stop"]
