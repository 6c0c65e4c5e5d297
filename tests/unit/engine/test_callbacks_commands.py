"""Commands and shells: SendStat and InjectShell."""

import sys

import pytest
from engine_fakes import Memory, PutEachEpoch, make_trainer, train

from ziggurat.callbacks import InjectShell, SendStat, bind_folder
from ziggurat.engine.callbacks.send_stat import command_arguments
from ziggurat.errors import ConfigurationError, UnknownNameError
from ziggurat.events import Message


def append_arguments_to(path):
    """Return a program that appends its arguments to a file."""
    code = f"import sys; open({str(path)!r}, 'a').write('|'.join(sys.argv[1:]) + chr(10))"
    return [sys.executable, "-c", code]


def messages(memory):
    return [event.text for event in memory.of_type(Message)]


def test_the_command_of_the_tutorial(tmp_path):
    (tmp_path / "curl").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\necho noise; echo noise >&2\n')
    (tmp_path / "curl").chmod(0o755)
    command = (
        f"{tmp_path}/curl -u your_id_xxx: https://api.pushbullet.com/v2/pushes \\\n"
        '     -d type=note -d title="validation error" \\\n'
        "     -d body={val-error-top1} > /dev/null 2>&1"
    )
    memory = train(PutEachEpoch("val-error-top1", [0.25]), SendStat(command, "val-error-top1"))
    assert (tmp_path / "said").read_text().splitlines() == [
        "-u",
        "your_id_xxx:",
        "https://api.pushbullet.com/v2/pushes",
        "-d",
        "type=note",
        "-d",
        "title=validation error",
        "-d",
        "body=0.25",
    ]
    assert messages(memory) == []


def test_one_command_an_epoch_in_order_with_the_newest_numbers(tmp_path):
    send = SendStat([*append_arguments_to(tmp_path / "said"), "x={x:.2f}", "{a.b/c[0]}"], ["x", "a.b/c[0]"])
    train(send, PutEachEpoch("x", [0.5, 0.25]), PutEachEpoch("a.b/c[0]", [1.0, 2.0]), epochs=2)
    assert (tmp_path / "said").read_text() == "x=0.50|1.0\nx=0.25|2.0\n"


def test_what_is_filled_in_never_becomes_a_command(tmp_path):
    class Evil(PutEachEpoch):
        def trigger(self):
            self.trainer.put("x; touch hacked", 1.0)

    send = SendStat([*append_arguments_to(tmp_path / "said"), "{x; touch hacked}"], "x; touch hacked")
    train(send, Evil("", []))
    assert (tmp_path / "said").read_text() == "1.0\n"


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("false {x}", "SendStat: `false` failed with exit code 1. Training goes on."),
        (
            "no-such-program-at-all {x}",
            "SendStat: `no-such-program-at-all` cannot be run (No such file or directory). Tr",
        ),
        ("sh -c 'echo wrong {x} >&2; exit 3'", "SendStat: `sh` failed with exit code 3: wrong 1.0. Training goes on."),
    ],
)
def test_a_command_that_fails_is_reported_and_training_goes_on(command, complaint):
    memory = train(PutEachEpoch("x", [1.0, 1.0]), SendStat(command, "x"), epochs=2)
    assert len(messages(memory)) == 2
    assert messages(memory)[0].startswith(complaint)


def test_a_command_that_takes_too_long_is_ended():
    memory = train(PutEachEpoch("x", [1.0]), SendStat("sleep 100", "x", limit_s=0.05))
    assert messages(memory) == ["SendStat: `sleep` took longer than 0.05 s and was ended. Training goes on."]


def test_a_missing_scalar_is_waited_for_and_said_once(tmp_path):
    class Late(PutEachEpoch):
        def trigger(self):
            if self.epoch_num == 3:
                super().trigger()

    send = SendStat([*append_arguments_to(tmp_path / "said"), "{x}"], "x")
    memory = train(send, Late("x", [0, 0, 7.0]), epochs=3)
    assert messages(memory) == ["SendStat waits for `x`: nothing was put there so far."]
    assert (tmp_path / "said").read_text() == "7.0\n"


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("curl -d 'a b' \"c d\" e\\ f", ["curl", "-d", "a b", "c d", "e f"]),
        ("say hi 2>/dev/null >/dev/null", ["say", "hi"]),
        ("say hi &> /dev/null", ["say", "hi"]),
        ("say 'a | b'", ["say", "a | b"]),
        ("say # no comment", ["say", "#", "no", "comment"]),
        ("curl https://u.example/p?q=1", ["curl", "https://u.example/p?q=1"]),
    ],
)
def test_command_lines_are_split_as_a_shell_would(line, arguments):
    assert command_arguments(line) == arguments


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (
            lambda: SendStat("echo {x} | mail me", "x"),
            ConfigurationError,
            "without a shell (received: `|` in 'echo {x}",
        ),
        (lambda: SendStat("echo {x} > file", "x"), ConfigurationError, "received: `>` in"),
        (lambda: SendStat("echo {x} && rm y", "x"), ConfigurationError, "received: `&&` in"),
        (
            lambda: SendStat("echo 'x", "x"),
            ConfigurationError,
            'must be a command line (received: "echo \'x" (No closing',
        ),
        (lambda: SendStat("", "x"), ConfigurationError, "SendStat runs one program, without a shell (received: '')."),
        (lambda: SendStat("echo {x", "x"), ConfigurationError, "Write `{{` and `}}` for braces"),
        (
            lambda: SendStat("echo {val-eror}", "val-error"),
            UnknownNameError,
            "`val-eror` is not a known scalar of this S",
        ),
    ],
)
def test_a_command_that_cannot_work_is_an_error_at_once(make, kind, text):
    with pytest.raises(kind) as caught:
        make()
    assert text in str(caught.value)


# ---- a shell in a living training


class Stdin:
    def __init__(self, terminal):
        self.terminal = terminal

    def isatty(self):
        return self.terminal


def test_a_file_opens_a_shell_with_the_trainer_in_it(tmp_path):
    opened = []
    shell = InjectShell(stdin=Stdin(True), open_shell=lambda names: opened.append(names["trainer"].epoch_num))

    class Touch(PutEachEpoch):
        def trigger(self):
            if self.epoch_num == 2:
                (tmp_path / "INJECT_SHELL.tmp").touch()

    bind_folder([shell], tmp_path)
    train(Touch("", []), shell, epochs=3)
    assert opened == [2, 3]
    assert not (tmp_path / "INJECT_SHELL.tmp").exists()


def test_without_a_terminal_it_says_so_once(tmp_path):
    (tmp_path / "shell").touch()
    memory = Memory()
    make_trainer(InjectShell(tmp_path / "shell", "python", stdin=Stdin(False)), monitors=[memory]).train(2)
    assert messages(memory) == ["shell asks for a shell, but standard input is not a terminal."]


def test_an_unknown_shell_lists_the_known():
    with pytest.raises(UnknownNameError, match=r"`ipyton` is not a known shell. Did you mean `ipython`"):
        InjectShell(shell="ipyton")
