"""Workers of a studio get the variables that they need and those that a setting names, and no others."""

from dataclasses import replace

import pytest

from ziggurat.errors import SettingsError
from ziggurat.settings import child_environment, load_settings
from ziggurat.workspace.frameworks import worker_environment

SERVER = {
    "PATH": "/usr/bin",
    "HOME": "/home/studio",
    "LC_TIME": "C",
    "CUDA_VISIBLE_DEVICES": "0",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "OMP_NUM_THREADS": "4",
    "OMP_WAIT_POLICY": "ACTIVE",
    "https_proxy": "http://proxy.example.org:3128",
    "NO_PROXY": "localhost",
}
SECRETS = {
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_PROFILE": "nightly",
    "HF_TOKEN": "secret",
    "MY_PASSWORD": "secret",
    "DATABASE_URL": "postgresql://ann:secret@db/studio",
    "NVIDIA_API_KEY": "secret",
    "TF_TOKEN_app_terraform_io": "secret",
    "TF_VAR_admin": "secret",
    "HTTP_PROXY": "http://ann:secret@proxy.example.org:3128",
    "ZIGGURAT_TOKEN": "secret",
    "ZIGGURAT_DATABASE": "secret",
}


def for_workers(environment):
    settings = replace(load_settings(environment), is_for_others=True)
    return worker_environment(settings, environment)


def test_workers_get_what_they_need_and_no_secret():
    assert for_workers(SERVER | SECRETS) == SERVER | {"ZIGGURAT_FOR_OTHERS": "1"}


def test_a_setting_names_what_they_get_besides():
    named = {"ZIGGURAT_WORKER_ENVIRONMENT": "AWS_*, HTTP_PROXY"}
    got = for_workers(SERVER | SECRETS | named)
    assert set(got) - set(SERVER) - set(named) == {
        "AWS_SECRET_ACCESS_KEY",
        "AWS_PROFILE",
        "HTTP_PROXY",
        "ZIGGURAT_FOR_OTHERS",
    }


def test_the_names_may_be_a_list_in_the_file(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text('worker_environment = ["HF_HOME", "WANDB_*"]\n')
    settings = replace(load_settings({}, file=file), is_for_others=True)
    given = {"HF_HOME": "/data/hf", "HF_TOKEN": "secret", "WANDB_MODE": "offline"}
    assert child_environment(settings, given) == {
        "HF_HOME": "/data/hf",
        "WANDB_MODE": "offline",
        "ZIGGURAT_WORKER_ENVIRONMENT": "HF_HOME,WANDB_*",
        "ZIGGURAT_FOR_OTHERS": "1",
    }


def test_a_training_in_the_users_own_shell_gets_all():
    assert child_environment(load_settings(SERVER), SERVER | {"HF_TOKEN": "mine"}) == SERVER | {"HF_TOKEN": "mine"}


@pytest.mark.parametrize("value", ["HF-HOME", "A=B", "$HOME"])
def test_what_is_no_name_of_a_variable_is_refused(value):
    with pytest.raises(SettingsError) as caught:
        load_settings({"ZIGGURAT_WORKER_ENVIRONMENT": value})
    assert str(caught.value).startswith(
        "The setting `worker_environment` must be a list of names of environment variables, in which `*` stands for "
        f"anything (received: {value!r} from ZIGGURAT_WORKER_ENVIRONMENT)."
    )


def test_a_number_is_kept_to_its_bounds():
    assert load_settings({"ZIGGURAT_BUILD_LIMIT_S": "0"}).build_limit_s == 0
    with pytest.raises(SettingsError, match="`stop_grace_s` must be a whole number from 1 to 86400"):
        load_settings({"ZIGGURAT_STOP_GRACE_S": "0"})


def test_idle_threads_of_workers_sleep_unless_the_user_says_else():
    assert for_workers({"PATH": "/usr/bin"})["OMP_WAIT_POLICY"] == "PASSIVE"
    assert worker_environment(load_settings({}), {})["OMP_WAIT_POLICY"] == "PASSIVE"
    assert for_workers({"OMP_WAIT_POLICY": "ACTIVE"})["OMP_WAIT_POLICY"] == "ACTIVE"
