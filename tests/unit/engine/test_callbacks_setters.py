"""Hyperparameters that change while it trains: by a list, a function, a plateau, a person, a schedule."""

import pytest
from engine_fakes import FakeProgram, Memory, PutEachEpoch, make_trainer, train

from ziggurat.callbacks import (
    Cosine,
    HumanHyperParamSetter,
    HyperParamSetter,
    HyperParamSetterWithFunc,
    LearningRateSchedule,
    ObjAttrParam,
    ProgramParam,
    ScheduledHyperParamSetter,
    StatMonitorParamSetter,
    Step,
    bind_folder,
)
from ziggurat.errors import ConfigurationError, StateError, UnknownNameError
from ziggurat.events import HyperparameterChanged, Message

RATE = "learning_rate"


def rates(*callbacks, epochs=4, per_epoch=1):
    """Return the rates that the steps used."""
    program = FakeProgram()
    make_trainer(*callbacks, program=program, steps_per_epoch=per_epoch).train(epochs)
    return program.rates_used


def changes(memory):
    return [(e.step, e.name, e.previous, e.value, e.source) for e in memory.of_type(HyperparameterChanged)]


class Thing:
    size = 3.0


# ---- what can be set


def test_an_attribute_of_any_object_can_be_set():
    thing = Thing()
    memory = train(ScheduledHyperParamSetter(ObjAttrParam(thing, "size", "thing size"), [(1, 7.0)]), epochs=2)
    assert thing.size == 7.0
    assert changes(memory) == [(4, "thing size", 3.0, 7.0, "schedule")]


def test_a_parameter_may_be_given_as_a_plain_name_or_an_object():
    assert rates(ScheduledHyperParamSetter(ProgramParam(RATE), [(1, 0.25)])) == [0.5, 0.25, 0.25, 0.25]
    assert rates(ScheduledHyperParamSetter(RATE, [(1, 0.25)])) == [0.5, 0.25, 0.25, 0.25]


def test_wrong_names_are_errors_before_the_first_step():
    with pytest.raises(UnknownNameError, match=r"`learning_rat` is not a known hyperparameter of this program"):
        train(HyperParamSetterWithFunc("learning_rat", lambda epoch, value: value))
    with pytest.raises(UnknownNameError, match=r"`sise` is not a known attribute of Thing. Did you mean `size`?"):
        ObjAttrParam(Thing(), "sise")
    with pytest.raises(StateError, match=r"The hyperparameter `learning_rate` belongs to a training."):
        ProgramParam(RATE).get_value()


# ---- by a list


def test_a_value_holds_from_after_its_epoch_on():
    memory = train(ScheduledHyperParamSetter(RATE, [(0, 0.4), (2, 0.2), (3, 0)]), epochs=4, steps_per_epoch=1)
    assert changes(memory) == [
        (0, RATE, 0.5, 0.4, "schedule"),
        (2, RATE, 0.4, 0.2, "schedule"),
        (3, RATE, 0.2, 0.0, "schedule"),  # 0 is a value
    ]


def test_a_scheduled_zero_at_the_start_is_a_value():
    assert rates(ScheduledHyperParamSetter(RATE, [(0, 0), (1, 0.1)]), epochs=2) == [0, 0.1]


def test_lines_between_the_pairs_and_nothing_beyond():
    setter = ScheduledHyperParamSetter(RATE, [(1, 0.4), (3, 0.2)], interp="linear")
    assert rates(setter, epochs=6) == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.2, 0.2])


def test_steps_instead_of_epochs():
    setter = ScheduledHyperParamSetter(RATE, [(2, 0.2), (5, 0.1)], step_based=True)
    assert rates(setter, epochs=2, per_epoch=3) == [0.5, 0.5, 0.2, 0.2, 0.2, 0.1]


def test_the_value_at_the_start_may_be_left_alone_and_is_said():
    memory = train(ScheduledHyperParamSetter(RATE, [(0, 0.25), (2, 0.1)], set_at_beginning=False), epochs=2)
    assert [event.text for event in memory.of_type(Message)] == [
        "`learning_rate` is 0.5 at the start, while its schedule says 0.25; it stays as it is."
    ]
    assert changes(memory) == [(8, RATE, 0.5, 0.1, "schedule")]


def test_a_resumed_value_holds_on_but_a_new_schedule_decides():
    first = make_trainer(ScheduledHyperParamSetter(RATE, [(0, 0.4)]), steps_per_epoch=1)
    first.train(1)
    first.program.set_hyperparameter(RATE, 0.33)  # somebody else has set it meanwhile
    state = first.state()
    for schedule, expected in (([(0, 0.4)], 0.33), ([(0, 0.4), (5, 0.1)], 0.4)):
        program = FakeProgram()
        second = make_trainer(ScheduledHyperParamSetter(RATE, schedule), program=program, steps_per_epoch=1)
        second.load_state(state)
        second.train(2)
        assert program.rates_used == [expected]


def test_an_attribute_gets_its_value_back_on_resume():
    first = make_trainer(ScheduledHyperParamSetter(ObjAttrParam(Thing(), "size"), [(1, 9.0)]))
    first.train(1)
    thing = Thing()
    second = make_trainer(ScheduledHyperParamSetter(ObjAttrParam(thing, "size"), [(1, 9.0)]))
    second.load_state(first.state())
    second.train(2)
    assert thing.size == 9.0


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: ScheduledHyperParamSetter(RATE, []), "`schedule` must be a list of (epoch, value) pairs whose epochs"),
        (lambda: ScheduledHyperParamSetter(RATE, [(3, 1), (2, 1)]), "received: [(3, 1.0), (2, 1.0)])."),
        (
            lambda: ScheduledHyperParamSetter(RATE, [(0, 1)], interp="cubic"),
            '`interp` must be None or "linear" (received: cubic).',
        ),
        (lambda: StatMonitorParamSetter(RATE, "x", abs, -1, 3), "received: threshold=-1, last_k=3)."),
        (
            lambda: LearningRateSchedule("step", 1, every="batch"),
            "`every` must be `step` or `epoch` (received: batch).",
        ),
    ],
)
def test_bad_arguments_say_the_rule(make, text):
    with pytest.raises(ConfigurationError) as caught:
        make()
    assert text in str(caught.value)


# ---- by a function, by a class of one's own, by a plateau


def test_a_function_of_epoch_and_old_value():
    setter = HyperParamSetterWithFunc(RATE, lambda epoch, old: old / 2 if epoch else None)
    assert rates(setter, epochs=3) == [0.5, 0.25, 0.125]


def test_tensorpacks_way_to_write_a_setter_works():
    class Mine(HyperParamSetter):
        def _get_value_to_set(self):
            return self.get_current_value() + 1

    assert rates(Mine(RATE), epochs=2) == [1.5, 2.5]


def test_a_scalar_that_stands_still_changes_the_parameter():
    values = [5, 4, 3.9, 3.9, 3.9, 1, 1, 1, 1]
    setter = StatMonitorParamSetter(RATE, "x", lambda rate: rate / 10, threshold=0.5, last_k=3)
    memory = train(setter, PutEachEpoch("x", values), epochs=9, steps_per_epoch=1)
    # [5, 4, 3.9]: progress; [4, 3.9, 3.9]: none, at step 4; then [3.9, 1, 1]: progress; [1, 1, 1]: none
    assert changes(memory) == [(4, RATE, 0.5, 0.05, "plateau"), (8, RATE, 0.05, 0.005, "plateau")]


def test_a_scalar_that_should_rise():
    setter = StatMonitorParamSetter(RATE, "x", lambda rate: 0.0, threshold=0, last_k=2, reverse=True)
    memory = train(PutEachEpoch("x", [1, 2, 2]), setter, epochs=3, steps_per_epoch=1)
    assert [step for step, *_ in changes(memory)] == [3]


# ---- by a person


class Edit(PutEachEpoch):
    """Writes a text into a file after each epoch, before any setter looks."""

    def __init__(self, path, texts):
        self.path, self.texts = path, texts

    def trigger(self):
        self.write(self.texts[self.epoch_num - 1])

    def write(self, text):
        if text is None:
            self.path.unlink(missing_ok=True)
        else:
            self.path.write_bytes(text.encode() if isinstance(text, str) else text)


def test_a_file_sets_the_rate_while_it_trains(tmp_path):
    path = tmp_path / "hyper.txt"
    edit = Edit(path, ["learning_rate: 0.25", None, "# a comment\n\nlearning_rate:0.125 # slower\n", None])
    memory = train(edit, HumanHyperParamSetter(RATE, path), epochs=4, steps_per_epoch=1)
    assert changes(memory) == [(1, RATE, 0.5, 0.25, "person"), (3, RATE, 0.25, 0.125, "person")]
    assert memory.of_type(Message) == []


def test_the_file_in_the_job_may_be_read_within_an_epoch(tmp_path):
    (tmp_path / "hyper.txt").write_text("learning_rate: 0.25")

    class EditAtStep3(PutEachEpoch):
        def hooks(self):
            return frozenset({"trigger_step"})

        def trigger_step(self):
            if self.global_step == 3:
                (tmp_path / "hyper.txt").write_text("learning_rate: 0.125")

    setter = HumanHyperParamSetter(RATE, every_k_steps=2)
    bind_folder([setter], tmp_path)
    assert rates(EditAtStep3("", []), setter, epochs=1, per_epoch=6) == [0.25, 0.25, 0.25, 0.25, 0.125, 0.125]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("learning_rate: fast", "line 1 is not `name: value` with a finite number: 'learning_rate: fast'"),
        ("momentum: 0.5\nlearning_rate: nan", "line 2 is not `name: value` with a finite number: 'learning_rate: nan'"),
        ("learning_rate: inf", "line 1 is not `name: value` with a finite number"),
        ("learning_rate 0.1", "line 1 is not `name: value`"),
        ("learning_rat: 0.1", "`learning_rat` cannot be set here (did you mean `learning_rate`?)"),
        (b"\xff\xfe", "it cannot be read"),
    ],
)
def test_a_wrong_line_is_reported_once_and_changes_nothing(tmp_path, text, complaint):
    path = tmp_path / "hyper.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    setters = [HumanHyperParamSetter(RATE, path), HumanHyperParamSetter("momentum", path)]
    memory = train(*setters, epochs=3, steps_per_epoch=1)
    (message,) = memory.of_type(Message)
    assert complaint in message.text
    assert message.text.startswith("hyper.txt: ")
    assert message.level == "warning"
    assert RATE not in [name for _, name, *_ in changes(memory)]


@pytest.mark.parametrize("human_first", [False, True])
def test_what_a_person_set_holds_as_long_as_it_stands_there(tmp_path, human_first):
    path = tmp_path / "hyper.txt"
    edit = Edit(path, ["learning_rate: 0.25", "learning_rate: 0.25", None, None])
    human = HumanHyperParamSetter(RATE, path)
    schedule = ScheduledHyperParamSetter(RATE, [(0, 0.5), (2, 0.1), (4, 0.01)])
    order = [edit, human, schedule] if human_first else [edit, schedule, human]
    assert rates(*order, epochs=4) == [0.5, 0.25, 0.25, 0.25]
    assert rates(*order, epochs=4)[-1] == 0.25


def test_a_schedule_by_step_rests_while_a_person_holds_the_rate(tmp_path):
    path = tmp_path / "hyper.txt"
    edit = Edit(path, ["learning_rate: 7", "learning_rate: 7", None, None])
    schedule = LearningRateSchedule(Step(step_percent=50, gamma=0.5), base=1.0)
    used = rates(edit, HumanHyperParamSetter(RATE, path), schedule, epochs=4, per_epoch=2)
    assert used == [1, 1, 7, 7, 7, 7, 0.5, 0.5]  # it takes over at the first step after the person has let go


HAND_TEXTS = {2: "learning_rate: 7", 7: None}
"""After which step the file gets a text; at its end a person has let go."""


class EditAtSteps(Edit):
    """Writes a text into a file after some steps."""

    def __init__(self, path, texts, stop_at=None):
        self.path, self.texts, self.stop_at = path, texts, stop_at

    def hooks(self):
        return frozenset({"trigger_step"})

    def trigger_step(self):
        if self.global_step in self.texts:
            self.write(self.texts[self.global_step])
        if self.global_step == self.stop_at:
            self.trainer.request_stop()


def held_by_hand(path, program, kind, human_first, stop_at=None, texts=HAND_TEXTS):
    """Return the trainer of twelve steps that a schedule and a file set the rate of."""
    schedule = {
        "cosine": lambda: LearningRateSchedule("cosine", 0.3),
        "fixed": lambda: LearningRateSchedule("fixed", 0.3),
        "epoch": lambda: LearningRateSchedule("cosine", 0.3, every="epoch"),
    }[kind]()
    both = [schedule, HumanHyperParamSetter(RATE, path, every_k_steps=1)]
    edit = EditAtSteps(path, texts, stop_at)
    return make_trainer(edit, *(both[::-1] if human_first else both), program=program, steps_per_epoch=4)


def expected_rates(path, kind):
    """Return the rates of twelve steps by the schedule alone, and with the third to seventh set by hand."""
    program = FakeProgram()
    held_by_hand(path, program, kind, False, texts={}).train(3)
    plain = program.rates_used
    return plain, [*plain[:2], *[7.0] * 5, *plain[7:]]


@pytest.mark.parametrize("kind", ["cosine", "fixed", "epoch"])
@pytest.mark.parametrize("human_first", [False, True])
def test_the_schedule_has_the_next_step_once_a_person_lets_go(tmp_path, kind, human_first):
    _, expected = expected_rates(tmp_path / "none.txt", kind)
    program = FakeProgram()
    trainer = held_by_hand(tmp_path / "hyper.txt", program, kind, human_first)
    trainer.train(3)
    assert program.rates_used == expected


@pytest.mark.parametrize("kind", ["cosine", "fixed", "epoch"])
@pytest.mark.parametrize("human_first", [False, True])
@pytest.mark.parametrize("stop", range(1, 12))
def test_what_held_goes_on_to_hold_when_a_training_is_resumed(tmp_path, kind, human_first, stop):
    path = tmp_path / "hyper.txt"
    _, expected = expected_rates(tmp_path / "none.txt", kind)
    one, two = FakeProgram(), FakeProgram()
    first = held_by_hand(path, one, kind, human_first, stop)
    first.train(3)
    second = held_by_hand(path, two, kind, human_first)
    second.load_state(first.state())
    second.train(3)
    assert one.rates_used + two.rates_used == expected


@pytest.mark.parametrize("kind", ["cosine", "fixed", "epoch"])
@pytest.mark.parametrize("human_first", [False, True])
def test_released_behind_the_checkpoint_the_schedule_holds(tmp_path, kind, human_first):
    path = tmp_path / "hyper.txt"
    plain, expected = expected_rates(tmp_path / "none.txt", kind)
    one, two = FakeProgram(), FakeProgram()
    first = held_by_hand(path, one, kind, human_first, stop_at=5)
    first.train(3)
    path.unlink()  # the worker was killed after this, and before it had saved again
    second = held_by_hand(path, two, kind, human_first)
    second.load_state(first.state())
    second.train(3)
    assert one.rates_used + two.rates_used == [*expected[:5], *plain[5:]]


def test_setting_and_letting_go_are_one_event_each_on_resume(tmp_path):
    path = tmp_path / "hyper.txt"
    told = []
    state = None
    for stop_at in (5, None):
        schedule, human = LearningRateSchedule("fixed", 0.25), HumanHyperParamSetter(RATE, path, every_k_steps=1)
        memory = Memory()
        edit = EditAtSteps(path, HAND_TEXTS, stop_at)
        trainer = make_trainer(edit, schedule, human, monitors=[memory], steps_per_epoch=4)
        if state is not None:
            trainer.load_state(state)
        trainer.train(3)
        state = trainer.state()
        told += changes(memory)
    assert told == [
        (0, RATE, 0.5, 0.25, "schedule"),
        (2, RATE, 0.25, 7.0, "person"),
        (7, RATE, 7.0, 0.25, "schedule"),
    ]


def test_a_checkpoint_that_only_has_the_value_is_taken_back(tmp_path):
    program = FakeProgram()
    setter = HumanHyperParamSetter(RATE, tmp_path / "hyper.txt")
    setter.load_state({"value": 0.125})
    make_trainer(setter, program=program, steps_per_epoch=1).train(1)
    assert program.rates_used == [0.125]


# ---- by a schedule


def test_the_rate_of_a_step_depends_on_its_number_only():
    schedule = LearningRateSchedule(Cosine(), base=0.2)
    assert rates(schedule, epochs=2, per_epoch=4) == [0.2 * Cosine()(step / 8) for step in range(8)]


def test_a_rate_for_each_epoch():
    schedule = LearningRateSchedule(Cosine(), base=0.2, every="epoch")
    expected = [0.2 * Cosine()(progress) for progress in (0, 0.5)]
    assert rates(schedule, epochs=2, per_epoch=3) == [expected[0]] * 3 + [expected[1]] * 3


@pytest.mark.parametrize("every", ["step", "epoch"])
@pytest.mark.parametrize("stop", range(1, 12))
def test_a_resumed_schedule_goes_on_exactly(every, stop):
    def trainer(program, stop_at=None):
        callbacks = [LearningRateSchedule("cosine", 0.3, every=every)]
        if stop_at is not None:
            callbacks.append(StopAt(stop_at))
        return make_trainer(*callbacks, program=program, steps_per_epoch=4)

    class StopAt(PutEachEpoch):
        def __init__(self, step):
            self.step = step

        def hooks(self):
            return frozenset({"trigger_step"})

        def trigger_step(self):
            if self.global_step == self.step:
                self.trainer.request_stop()

    whole, one, two = FakeProgram(), FakeProgram(), FakeProgram()
    trainer(whole).train(3)
    first = trainer(one, stop)
    first.train(3)
    second = trainer(two)
    second.load_state(first.state())
    second.train(3)
    assert one.rates_used + two.rates_used == whole.rates_used


def test_changes_are_events_at_once_where_the_rate_stood_still():
    memory = train(LearningRateSchedule(Step(step_percent=50, gamma=0.1), base=1.0), epochs=2)
    assert changes(memory) == [(0, RATE, 0.5, 1.0, "schedule"), (4, RATE, 1.0, pytest.approx(0.1), "schedule")]


def test_a_smooth_schedule_is_reported_once_an_epoch():
    memory = train(LearningRateSchedule("poly", base=0.5), epochs=3)
    assert [step for step, *_ in changes(memory)] == [4, 8, 12]


def test_another_hyperparameter_can_be_scheduled():
    program = FakeProgram()
    make_trainer(LearningRateSchedule("linear", 0.8, "momentum"), program=program).train(1)
    assert program.rates["momentum"] == pytest.approx(0.2)  # of the last step
    assert set(program.rates_used) == {0.5}


def test_more_epochs_than_before_stretch_the_schedule():
    trainer = make_trainer(LearningRateSchedule("linear", 1.0), steps_per_epoch=2)
    trainer.train(1)
    trainer.train(2)
    assert trainer.program.rates_used == [1.0, 0.5, 0.5, 0.25]
