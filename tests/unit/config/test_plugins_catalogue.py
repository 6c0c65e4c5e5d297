"""Plugins are found by their entry points, loaded one by one, and a broken one harms no other."""

import sys

import pytest

from ziggurat.errors import MissingDependencyError, PluginError, UnknownNameError
from ziggurat.plugins import GROUPS, PluginCatalogue, available, load


class Site:
    """A folder in which packages with entry points are planted."""

    def __init__(self, path):
        self.path = path

    def install(self, distribution, module_text="", version="1.0", **groups):
        """Plant a package whose one module has the text; ``groups`` maps a group to its entry-point lines."""
        information = self.path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        information.mkdir()
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        sections = [f"[ziggurat.{group}]\n" + "\n".join(lines) for group, lines in groups.items()]
        (information / "entry_points.txt").write_text("\n\n".join(sections) + "\n")
        (self.path / f"{distribution.replace('-', '_')}_code.py").write_text(module_text)

    def catalogue(self):
        return PluginCatalogue([str(self.path)])


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    return Site(tmp_path)


def test_listing_imports_nothing(site):
    site.install(
        "Zig-Extra", "raise RuntimeError('imported')", "2.1", callbacks=["zap = zig_extra_code:Zap", "abc = x"]
    )
    found = site.catalogue().available("callbacks")
    assert [(each.name, each.target, each.distribution, each.version) for each in found] == [
        ("abc", "x", "zig-extra", "2.1"),
        ("zap", "zig_extra_code:Zap", "zig-extra", "2.1"),
    ]
    assert not found[0].is_built_in
    assert "zig_extra_code" not in sys.modules


def test_a_name_is_loaded(site):
    site.install("one", "class Outer:\n    value = 7\n", monitors=["seven = one_code:Outer.value", "whole = one_code"])
    assert site.catalogue().load("monitors", "seven") == 7
    assert site.catalogue().load("monitors", "whole").Outer.value == 7


def test_an_unknown_name_lists_the_nearest_and_the_known(site):
    site.install("two", "", backends=["tensorflow = a:b", "torch = a:b"])
    with pytest.raises(UnknownNameError) as caught:
        site.catalogue().load("backends", "tensorflw")
    assert str(caught.value) == (
        "`tensorflw` is not a known backend. Did you mean `tensorflow`? Known: tensorflow, torch."
    )


def test_an_unknown_group_is_an_error():
    with pytest.raises(UnknownNameError, match=r"`backend` is not a known plugin group\. Did you mean `backends`\?"):
        available("backend")
    with pytest.raises(UnknownNameError, match="`monitor` is not a known plugin group"):
        load("monitor", "events")


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("raise RuntimeError('out of luck')", "RuntimeError: out of luck"),
        ("import nothing_like_that", "ModuleNotFoundError: No module named 'nothing_like_that'"),
        ("", "AttributeError: module 'bad_code' has no attribute 'Zap'"),
    ],
)
def test_a_broken_plugin_is_named_and_harms_no_other(site, text, cause):
    site.install("bad", text, "0.3", callbacks=["zap = bad_code:Zap"])
    site.install("good", "Fine = 1", callbacks=["fine = good_code:Fine"])
    catalogue = site.catalogue()
    with pytest.raises(PluginError) as caught:
        catalogue.load("callbacks", "zap")
    assert str(caught.value) == (
        f"The callback `zap` of bad 0.3 does not load (received: {cause}). "
        "Update or uninstall bad; everything else goes on working."
    )
    assert caught.value.__cause__ is not None
    assert catalogue.load("callbacks", "fine") == 1
    for name in ("bad_code", "good_code"):
        sys.modules.pop(name, None)


def test_an_error_of_ours_that_a_plugin_raises_stays_as_it_is(site):
    text = (
        "from ziggurat.errors import MissingDependencyError\n"
        "raise MissingDependencyError('torch', extra='torch', purpose='training with PyTorch')\n"
    )
    site.install("needy", text, backends=["needy = needy_code:Backend"])
    with pytest.raises(MissingDependencyError, match=r"pip install 'ziggurat\[torch\]'"):
        site.catalogue().load("backends", "needy")


def test_two_packages_that_claim_a_name_are_both_named(site):
    site.install("first", "", views=["boxes = a:b", "own = first_code:__name__"])
    site.install("second", "", "2.0", views=["boxes = a:b"])
    with pytest.raises(PluginError) as caught:
        site.catalogue().load("views", "boxes")
    assert str(caught.value) == (
        "The view `boxes` must come from one package (received: first 1.0 and second 2.0). Uninstall one of them."
    )
    assert site.catalogue().load("views", "own") == "first_code"


def test_nobody_takes_a_built_ins_name(site):
    site.install("ziggurat", "Real = 'real'", callbacks=["saver = ziggurat_code:Real"])
    site.install("zz-thief", "Fake = 'fake'", callbacks=["saver = zz_thief_code:Fake"])
    catalogue = site.catalogue()
    assert catalogue.load("callbacks", "saver") == "real"
    assert [each.is_built_in for each in catalogue.available("callbacks")] == [True, False]


def test_every_group_has_a_word_for_one_of_its_members():
    assert GROUPS["backends"] == "backend"
    assert all(group.replace("_", " ") == word + "s" for group, word in GROUPS.items())
