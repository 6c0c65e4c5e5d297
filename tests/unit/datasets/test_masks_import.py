"""Images with masks: how masks are drawn, which files belong together, and what is wrong with some."""

import io
from collections import Counter

import cv2
import numpy as np
import pytest
from exported_datasets import guessed, kinds_of, read_back, shared_folder
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from small_sources import request

from ziggurat.dataflow.image_codec import encode_image
from ziggurat.datasets.creation import create_dataset
from ziggurat.datasets.dataset import Dataset
from ziggurat.datasets.formats.masks.exporter import export_masks
from ziggurat.datasets.formats.masks.importer import MasksImporter
from ziggurat.datasets.statistics import statistics_of
from ziggurat.errors import ConfigurationError, DataError, DatapointError

CLASSES = np.array([[0, 1, 2], [2, 2, 1]], np.uint8)
COLOURS = [(0, 0, 0), (255, 0, 0), (0, 128, 255)]
PICTURE = encode_image(np.full((2, 3, 3), 90, np.uint8), "png")


def png(mask):
    return cv2.imencode(".png", mask)[1].tobytes()


def palette_png(mask, colours=COLOURS):
    image = Image.frombytes("P", (mask.shape[1], mask.shape[0]), mask.tobytes())
    image.putpalette([value for colour in colours for value in colour])
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


def colour_png(mask, colours=COLOURS):
    return encode_image(np.array(colours, np.uint8)[mask], "png")


def put(folder, files):
    for path, content in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def numbers(part):
    return cv2.imdecode(np.frombuffer(part, np.uint8), cv2.IMREAD_UNCHANGED)


def masks_of(found):
    return {key: numbers(parts[1]).tolist() for key, (_split, parts, _label) in found.samples.items()}


# ---- how a mask is drawn


def test_grey_values_are_class_numbers_and_the_file_is_kept(tmp_path):
    mask = png(CLASSES)
    put(tmp_path, {"images/a.jpg": PICTURE, "masks/a.png": mask})
    found = read_back(MasksImporter(), tmp_path)
    assert found.samples == {"images/a.jpg": ("", (PICTURE, mask), None)}
    assert found.schema.parts == ("image", "mask")


def test_palette_numbers_are_class_numbers(tmp_path):
    put(tmp_path, {"JPEGImages/a.jpg": PICTURE, "SegmentationClass/a.png": palette_png(CLASSES)})
    found = read_back(MasksImporter(), tmp_path)
    assert masks_of(found) == {"JPEGImages/a.jpg": CLASSES.tolist()}
    assert found.schema.colours[:3] == tuple(COLOURS)


@pytest.mark.parametrize(
    "text",
    [
        "0 0 0\n255 0 0\n0 128 255\n0 0 0\n",  # DIGITS: class i is line i; it fills the rest up with black
        "void 0 0 0\r\nroad 255 0 0\r\ncar 0 128 255\r\n",
        "0 0 0\tvoid\n255 0 0\troad\n0 128 255\tcar\n",
        "name,r,g,b\nvoid,0,0,0\nroad,255,0,0\ncar,0,128,255\n",
    ],
)
def test_a_colour_map_gives_the_classes_of_colours(tmp_path, text):
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": colour_png(CLASSES), "map.txt": text})
    found = read_back(MasksImporter(), tmp_path, colour_file="map.txt", mode="rgb")
    assert masks_of(found) == {"images/a.png": CLASSES.tolist()}
    assert found.schema.colours[:3] == tuple(COLOURS)
    assert found.schema.class_names in ((), ("void", "road", "car"))


def test_colours_may_be_an_option_and_names_a_file(tmp_path):
    put(
        tmp_path,
        {"images/a.png": PICTURE, "masks/a.png": colour_png(CLASSES), "names.txt": "void\nStraße\ncar\n"},
    )
    colours = [list(colour) for colour in COLOURS]
    found = read_back(MasksImporter(), tmp_path, colours=colours, classes="names.txt", ignore_class=0)
    assert masks_of(found) == {"images/a.png": CLASSES.tolist()}
    assert found.schema.class_names == ("void", "Straße", "car")
    assert found.schema.ignore_class == 0


def test_black_and_white_and_few_bits_are_class_numbers_too(tmp_path):
    light = np.array([[0, 255], [254, 3]], np.uint8)
    file = io.BytesIO()
    Image.fromarray(light >= 128).save(file, "PNG")  # one bit a pixel
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": png(light), "images/b.png": PICTURE})
    put(tmp_path, {"masks/b.png": file.getvalue()})
    assert masks_of(read_back(MasksImporter(), tmp_path, mode="binary"))["images/a.png"] == [[0, 1], [1, 0]]
    assert masks_of(read_back(MasksImporter(), tmp_path))["images/b.png"] == [[0, 1], [1, 0]]


def test_black_and_white_are_two_classes(tmp_path):
    for number in range(6):
        put(tmp_path, {f"images/{number}.png": PICTURE, f"masks/{number}.png": png(CLASSES // 2 * 255)})
    found = read_back(MasksImporter(), tmp_path)
    assert masks_of(found)["images/5.png"] == (CLASSES // 2).tolist()
    assert (found.schema.class_names, found.schema.ignore_class, found.problems) == (("0", "255"), None, [])


def test_a_class_that_only_a_later_mask_has_stays(tmp_path):
    for number in range(6):
        put(tmp_path, {f"images/{number}.png": PICTURE, f"masks/{number}.png": png(CLASSES // 2 * 255)})
    put(tmp_path, {"masks/5.png": png(CLASSES)})
    found = read_back(MasksImporter(), tmp_path)
    assert masks_of(found)["images/5.png"] == CLASSES.tolist()
    assert found.schema.ignore_class == 255


def test_more_than_256_classes_have_16_bits(tmp_path):
    mask = np.array([[0, 300], [65535, 7]], np.uint16)
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": png(mask)})
    assert masks_of(read_back(MasksImporter(), tmp_path, mode="index")) == {"images/a.png": mask.tolist()}


# ---- what is wrong with a mask


def read_error(tmp_path, **options):
    with pytest.raises(DatapointError) as error:
        read_back(MasksImporter(), tmp_path, **options)
    return str(error.value)


def test_a_colour_without_a_class_is_named(tmp_path):
    mask = colour_png(CLASSES, [*COLOURS[:2], (9, 9, 9)])
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": mask, "colormap.txt": "0 0 0\n255 0 0\n"})
    text = read_error(tmp_path)
    assert "its color 9 9 9 at row 0, column 2 is in no line of the color map (3 such pixels)" in text


def test_masks_share_one_palette(tmp_path):
    other = [(0, 0, 0), (1, 2, 3), (0, 128, 255)]
    put(tmp_path, {f"images/{name}.png": PICTURE for name in "ab"})
    put(tmp_path, {"masks/a.png": palette_png(CLASSES), "masks/b.png": palette_png(CLASSES, other)})
    assert "its color 1 is (1, 2, 3) instead of (255, 0, 0)" in read_error(tmp_path)


def test_colours_without_a_map_and_unwanted_ones_are_refused(tmp_path):
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": colour_png(CLASSES)})
    with pytest.raises(DataError, match="it is not known which class each stands for") as error:
        read_back(MasksImporter(), tmp_path)
    assert "`colour_file`" in str(error.value)
    assert "(0, 128, 255)" in str(error.value)
    assert error.value.details["field"] == "options.colour_file"
    assert "a mask in the mode index has one channel, and it is RGB" in read_error(tmp_path, mode="index")
    assert "it has no palette" in read_error(tmp_path, mode="palette")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", b"<html>", png(np.zeros((50, 50), np.uint8))[:60]])
def test_a_damaged_mask_is_refused(tmp_path, content):
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": content})
    assert "masks/a.png" in read_error(tmp_path)


@pytest.mark.parametrize("line", ["1 2", "1 2 256", "red green blue", "-1 0 0"])
def test_a_bad_line_of_a_colour_map_is_named(tmp_path, line):
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": png(CLASSES), "map.txt": f"0 0 0\n{line}\n"})
    with pytest.raises(DataError, match=r"A line of a color map is .* line 2"):
        read_back(MasksImporter(), tmp_path, colour_file="map.txt")


def test_an_option_that_is_no_list_of_colours_is_refused(tmp_path):
    put(tmp_path, {"images/a.png": PICTURE, "masks/a.png": png(CLASSES)})
    with pytest.raises(ConfigurationError, match=r"list of \[R, G, B\]"):
        read_back(MasksImporter(), tmp_path, colours=[[1, 2, 999]])


# ---- which files belong together


@pytest.mark.parametrize(
    ("pictures", "masks"),
    [
        ("train", "trainannot"),
        ("images/train", "masks/train"),
        ("training/images", "training/labels"),
        ("train", "train_masks"),
    ],
)
def test_layouts_with_a_split(tmp_path, pictures, masks):
    put(tmp_path, {f"{pictures}/ä b.jpg": PICTURE, f"{masks}/ä b.png": png(CLASSES)})
    found = read_back(MasksImporter(), tmp_path)
    assert list(found.samples) == [f"{pictures}/ä b.jpg"]
    assert found.samples[f"{pictures}/ä b.jpg"][0] == "train"
    assert found.problems == []
    assert MasksImporter().guess(tmp_path).confidence > 0.9


def test_files_without_a_partner_are_listed(tmp_path):
    put(tmp_path, {"images/deep/a.jpg": PICTURE, "images/deep/b.jpg": PICTURE})
    put(tmp_path, {"masks/deep/a_mask.png": png(CLASSES), "masks/deep/c_mask.png": png(CLASSES)})
    (tmp_path / "images/gone.jpg").symlink_to(tmp_path / "nowhere.jpg")
    found = read_back(MasksImporter(), tmp_path, mask_suffix="_mask")
    assert list(found.samples) == ["images/deep/a.jpg"]
    assert kinds_of(found.problems) == {
        "images/gone.jpg": "unreadable",
        "images/deep/b.jpg": "no-label",
        "masks/deep/c_mask.png": "no-picture",
    }
    assert all(problem.left_out for problem in found.problems)


def test_a_link_to_a_folder_above_ends(tmp_path):
    put(tmp_path, {"images/a.jpg": PICTURE, "masks/a.png": png(CLASSES)})
    (tmp_path / "images/again").symlink_to(tmp_path / "images")
    keys = list(read_back(MasksImporter(), tmp_path).samples)
    assert keys == ["images/a.jpg"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_list_of_pairs_in_any_encoding(tmp_path, encoding):
    lines = [
        "x/ö.jpg y/ö.png",
        "x/b c.jpg\ty/b c.png\tname of its own",
        "nonsense",
        "../out.jpg y/ö.png",
        "x/ö.jpg y/z.png",
    ]
    put(tmp_path, {f"x/{name}.jpg": PICTURE for name in ("ö", "b c")})
    put(tmp_path, {f"y/{name}.png": png(CLASSES) for name in ("ö", "b c")})
    (tmp_path / "val.txt").write_bytes("\r\n".join(lines).encode(encoding))
    found = read_back(MasksImporter(), tmp_path)
    assert {key: split for key, (split, _parts, _label) in found.samples.items()} == {
        "x/ö.jpg": "val",
        "name of its own": "val",
    }
    assert kinds_of(found.problems) == {"val.txt:3": "bad-line", "val.txt:4": "bad-line", "x/ö.jpg": "duplicate-key"}


def test_voc_lists_give_the_splits(tmp_path):
    files = {f"JPEGImages/{name}.jpg": PICTURE for name in "abc"} | {
        f"SegmentationClass/{name}.png": palette_png(CLASSES) for name in "abc"
    }
    put(tmp_path, files | {"ImageSets/Segmentation/train.txt": "a\nb\n", "ImageSets/Segmentation/val.txt": "c\n"})
    found = read_back(MasksImporter(), tmp_path)
    assert [split for split, _parts, _label in found.samples.values()] == ["train", "train", "val"]


def test_validation_folders_may_be_named_as_digits_asked(tmp_path):
    put(tmp_path, {"one/a.jpg": PICTURE, "two/a.png": png(CLASSES), "three/b.jpg": PICTURE, "four/b.png": png(CLASSES)})
    folders = {"images": "one", "masks": "two", "val_images": "three", "val_masks": "four"}
    found = read_back(MasksImporter(), tmp_path, **folders)
    assert {key: each[0] for key, each in found.samples.items()} == {"one/a.jpg": "train", "three/b.jpg": "val"}


def test_a_source_without_any_pair_says_what_to_do(tmp_path):
    put(tmp_path, {"a.jpg": PICTURE})
    assert MasksImporter().guess(tmp_path) is None
    with pytest.raises(DataError, match="Name the folders with the options `images` and `masks`"):
        read_back(MasksImporter(), tmp_path)


def test_yolo_labels_and_class_folders_are_not_taken_for_masks(tmp_path):
    put(tmp_path / "yolo", {"images/train/a.jpg": PICTURE, "labels/train/a.txt": "0 0.5 0.5 1 1\n"})
    put(tmp_path / "classes", {"cat/a.jpg": PICTURE, "dog/a.jpg": PICTURE})
    assert MasksImporter().guess(tmp_path / "yolo") is None
    assert MasksImporter().guess(tmp_path / "classes") is None


def test_camvid_is_found_as_its_page_says():
    source = shared_folder("camvid")
    assert guessed(source) == ("masks", "segmentation")
    complete = MasksImporter().checked_options({"ignore_class": 11})
    scan = MasksImporter().scan(source, complete)
    splits = [each.split for each in scan]
    assert (splits.count("train"), splits.count("val"), len(splits)) == (100, 40, 140)
    assert scan.schema.ignore_class == 11


# ---- unlabeled pixels

VOID = np.array([[0, 1, 255], [2, 255, 1]], np.uint8)


def palette_of(count):
    """Return a palette of 256 colors, as programs for masks write it."""
    return [(number, 255 - number, number // 2) for number in range(count)]


@pytest.mark.parametrize("encoded", [lambda: palette_png(VOID, palette_of(256)), lambda: png(VOID)])
def test_255_beyond_the_classes_is_ignored(tmp_path, encoded):
    put(tmp_path, {f"JPEGImages/{stem}.jpg": PICTURE for stem in "ab"})
    put(tmp_path, {f"SegmentationClass/{stem}.png": encoded() for stem in "ab"})
    found = read_back(MasksImporter(), tmp_path)
    assert found.schema.ignore_class == 255
    assert len(found.schema.colours) in (0, 255), "no color for what is no class"
    assert masks_of(found)["JPEGImages/a.jpg"] == VOID.tolist()


def test_a_person_decides_what_is_ignored(tmp_path):
    put(tmp_path, {"images/a.jpg": PICTURE, "masks/a.png": png(VOID)})
    assert read_back(MasksImporter(), tmp_path, ignore_class=2).schema.ignore_class == 2
    assert read_back(MasksImporter(), tmp_path, ignore_class=-1).schema.ignore_class is None


@pytest.mark.parametrize("values", [[0, 255], [0, 1, 2], [0, 100, 252, 253, 254, 255]])
def test_255_is_a_value_where_nothing_sets_it_apart(tmp_path, values):
    mask = np.resize(np.array(values, np.uint8), (2, 3))
    put(tmp_path, {"images/a.jpg": PICTURE, "masks/a.png": png(mask)})
    assert read_back(MasksImporter(), tmp_path).schema.ignore_class is None


def test_ignored_pixels_are_in_manifest_and_statistics(tmp_path):
    put(tmp_path / "source", {f"images/{stem}.jpg": PICTURE for stem in "abcd"})
    put(tmp_path / "source", {f"masks/{stem}.png": palette_png(VOID, palette_of(256)) for stem in "abcd"})
    put(tmp_path / "source", {"classes.txt": "road\ncar\ntree\n"})
    made = create_dataset(request(tmp_path / "source"), tmp_path / "set")
    assert made.schema.ignore_class == 255
    with Dataset(tmp_path / "set") as dataset:
        masks = statistics_of(dataset).masks
    assert [(name, share) for _, name, share, _ in masks.shares] == [("road", 0.25), ("car", 0.5), ("tree", 0.25)]
    assert (masks.ignore_class, round(masks.ignored_share, 3)) == (255, 0.333)


# ---- values of masks


def source_of(folder, masks, ending="png", **files):
    """Put images with these masks into a folder: (H, W) arrays, or bytes of files."""
    for number, mask in enumerate(masks):
        content = mask if isinstance(mask, bytes) else png(mask)
        height, width = (2, 3) if isinstance(mask, bytes) else mask.shape
        image = encode_image(np.full((height, width, 3), 10 * number, np.uint8), "png")
        put(folder, {f"images/{number}.png": image, f"masks/{number}.{ending}": content})
    return put(folder, {name.replace("__", "."): text for name, text in files.items()})


def jpeg(mask):
    return cv2.imencode(".jpg", mask, [cv2.IMWRITE_JPEG_QUALITY, 75])[1].tobytes()


def test_values_with_gaps_become_classes_and_are_told(tmp_path):
    source = source_of(tmp_path / "source", [np.array([[0, 50]], np.uint8), np.array([[100, 255]], np.uint8)])
    found = read_back(MasksImporter(), source)
    assert masks_of(found) == {"images/0.png": [[0, 1]], "images/1.png": [[2, 255]]}
    assert found.schema.class_names == ("0", "50", "100")
    assert found.schema.details == {"mask_values": [0, 50, 100], "mask_ignored": 255}
    assert found.schema.ignore_class == 255
    (problem,) = found.problems
    assert problem.kind == "mask-values"
    assert "the values 0, 50, 100" in problem.reason
    as_they_are = read_back(MasksImporter(), source, mode="index")
    assert masks_of(as_they_are)["images/0.png"] == [[0, 50]]


def test_the_values_of_the_source_are_exported(tmp_path):
    masks = [np.array([[0, 50], [100, 7]], np.uint8), np.array([[100, 7], [7, 300]], np.uint16)]
    source = source_of(tmp_path / "source", masks)
    options = {"ignore_class": 7}
    create_dataset(request(source, format="masks", options=options), tmp_path / "set")
    with Dataset(tmp_path / "set") as dataset:
        assert dataset.schema.ignore_class == 255
        export_masks(dataset, tmp_path / "out")
    written = {path.stem: numbers(path.read_bytes()).tolist() for path in (tmp_path / "out/masks").rglob("*.png")}
    assert written == {str(number): mask.tolist() for number, mask in enumerate(masks)}
    again = read_back(MasksImporter(), tmp_path / "out")
    assert masks_of(again)["images/0.png"] == [[0, 1], [2, 255]]
    assert again.schema.class_names == ("0", "50", "100", "300")
    assert again.problems == []
    (tmp_path / "out/.ziggurat-schema.json").unlink()
    (tmp_path / "out/classes.txt").unlink()
    assert read_back(MasksImporter(), tmp_path / "out").schema.class_names == ("0", "50", "100", "300")


@pytest.mark.parametrize("high", [255, 3])
def test_masks_as_jpeg_are_refused_by_their_values(tmp_path, high):
    mask = np.zeros((48, 64), np.uint8)
    mask[10:30, 13:41] = high
    mask[5:9, 3:20] = high // 3
    source = source_of(tmp_path, [jpeg(mask)], "jpg")
    with pytest.raises(DataError, match="JPEG changes values") as error:
        read_back(MasksImporter(), source)
    assert error.value.details["field"] == "options.mode"
    assert "`binary`" in error.value.advice
    assert set(np.unique(masks_of(read_back(MasksImporter(), source, mode="binary"))["images/0.png"])) <= {0, 1}


def test_soft_edges_are_refused_and_classes_without_gaps_are_not(tmp_path):
    soft = cv2.resize(np.array([[0, 255], [255, 0]], np.uint8), (64, 64), interpolation=cv2.INTER_LINEAR)
    with pytest.raises(DataError, match="different gray values, too many to be classes: soft edges"):
        read_back(MasksImporter(), source_of(tmp_path / "soft", [soft]))
    many = np.arange(40, dtype=np.uint8).reshape(5, 8)
    found = read_back(MasksImporter(), source_of(tmp_path / "many", [many]))
    assert masks_of(found)["images/0.png"] == many.tolist()


def test_gray_values_in_three_channels_are_values(tmp_path):
    source = source_of(tmp_path, [encode_image(np.repeat(CLASSES[:, :, None], 3, axis=2), "png")])
    assert masks_of(read_back(MasksImporter(), source))["images/0.png"] == CLASSES.tolist()


def test_minus_one_is_no_class(tmp_path):
    file = io.BytesIO()
    Image.fromarray(np.array([[0, 1, -1], [2, -1, 1]], np.int32)).save(file, "TIFF")
    found = read_back(MasksImporter(), source_of(tmp_path, [file.getvalue()], "tif"))
    assert masks_of(found)["images/0.png"] == VOID.tolist()[0:1] + [[2, 255, 1]]
    assert found.schema.ignore_class == 255


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("classes.json", '{"0": "sky", "7": "road", "26": "car"}'),
        ("classes.json", '{"sky": 0, "road": 7, "car": 26}'),
        ("labels.json", '{"labels": [{"id": 0, "name": "sky"}, {"id": 7, "name": "road"}, {"id": 26, "name": "car"}]}'),
        ("labels.txt", "0: sky\n7: road\n26: car\n"),
        ("classes.txt", "0 sky\n7 road\n26 car\n"),
        (
            "label_map.pbtxt",
            "".join(
                f"item {{\n id: {value}\n name: '{name}'\n}}\n"
                for value, name in ((0, "sky"), (7, "road"), (26, "car"))
            ),
        ),
    ],
)
def test_names_by_value_are_found_in_files_of_other_tools(tmp_path, name, text):
    masks = [np.array([[0, 7], [26, 255]], np.uint8), np.array([[7, 7], [99, 255]], np.uint8)]
    found = read_back(MasksImporter(), put(source_of(tmp_path, masks), {name: text}))
    assert found.schema.class_names == ("sky", "road", "car")
    assert masks_of(found) == {"images/0.png": [[0, 1], [2, 255]], "images/1.png": [[1, 1], [255, 255]]}
    assert [(each.kind, each.names, each.left_out) for each in found.problems] == [("unknown-class", 1, False)]
    assert "The value 99 is in 1 mask(s)" in found.problems[0].reason


def test_the_color_map_of_cvat_is_found(tmp_path):
    text = "# label:color_rgb:parts:actions\nbackground:0,0,0::\nwide road:255,0,0::\ncar:0,128,255:a,b:c\n"
    source = source_of(tmp_path, [colour_png(CLASSES)], labelmap__txt=text)
    found = read_back(MasksImporter(), source)
    assert found.schema.class_names == ("background", "wide road", "car")
    assert masks_of(found)["images/0.png"] == CLASSES.tolist()


def test_a_value_without_a_name_is_a_loss(tmp_path):
    source = source_of(tmp_path / "source", [np.array([[0, 1], [5, 1]], np.uint8)] * 3, classes__txt="sky\nroad\n")
    made = create_dataset(request(source, format="masks"), tmp_path / "set")
    (loss,) = made.losses
    assert (loss["unit"], loss["lost"], loss["warns"]) == ("names", 1, True)
    assert "no class has it" in loss["text"]


def test_black_and_white_with_two_names(tmp_path):
    source = source_of(tmp_path, [CLASSES // 2 * 255], classes__txt="ground\nbuilding\n")
    found = read_back(MasksImporter(), source)
    assert masks_of(found)["images/0.png"] == (CLASSES // 2).tolist()
    assert (found.schema.class_names, found.problems) == (("ground", "building"), [])


@pytest.mark.parametrize("values", [[0, 0], [-1], ["a"], [1 << 16]])
def test_an_option_that_is_no_list_of_values_is_refused(tmp_path, values):
    with pytest.raises(ConfigurationError, match="whole numbers from 0 to 65535"):
        read_back(MasksImporter(), source_of(tmp_path, [CLASSES]), values=values)


def test_a_folder_without_masks_loses_each_of_its_images(tmp_path):
    put(tmp_path, {f"images/train/{name}.png": PICTURE for name in "ab"})
    put(tmp_path, {f"images/val/{name}.png": PICTURE for name in "cde"})
    put(tmp_path, {"masks/train/a.png": png(CLASSES), "masks/train/b.png": png(CLASSES)})
    lost = read_back(MasksImporter(), tmp_path).problems
    assert [(each.key, each.kind, each.left_out, each.split) for each in lost] == [
        (f"images/val/{name}.png", "no-label", True, "val") for name in "cde"
    ]


@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    files=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=8),
    values=st.lists(st.integers(0, 255), min_size=1, max_size=4, unique=True),
    count=st.integers(0, 3),
)
def test_all_that_is_in_a_source_comes_out_or_is_lost(tmp_path_factory, files, values, count):
    folder = tmp_path_factory.mktemp("any")
    put(folder, {"images/kept.png": PICTURE, "masks/kept.png": png(np.resize(np.array(values, np.uint8), (2, 3)))})
    for number, (has_image, has_mask) in enumerate(files):
        put(folder, {f"images/{number}.png": PICTURE} if has_image else {})
        put(folder, {f"masks/{number}.png": png(np.resize(np.array(values, np.uint8), (2, 3)))} if has_mask else {})
    if count:
        put(folder, {"classes.txt": "".join(f"class {number}\n" for number in range(count))})
    found = read_back(MasksImporter(), folder)
    kinds = Counter(each.kind for each in found.problems)
    assert len(found.samples) == 1 + sum(image and mask for image, mask in files)
    assert kinds["no-label"] == sum(image and not mask for image, mask in files)
    assert kinds["no-picture"] == sum(mask and not image for image, mask in files)
    classes = set(np.unique(masks_of(found)["images/kept.png"]).tolist())
    names, ignored = found.schema.class_names, found.schema.ignore_class
    kept = {value for value in classes if value != ignored and value < (len(names) or 256)}
    lost = sum(each.names for each in found.problems if each.kind == "unknown-class")
    is_void = 255 in values and ignored is not None and lost + len(kept) < len(values)
    assert len(kept) + lost + is_void == len(values)


@pytest.mark.parametrize(
    ("kind", "values", "name"), [("labelIds", [0, 7, 26, 33], "car"), ("labelTrainIds", [0, 1, 13, 255], "car")]
)
def test_cityscapes_is_found_by_its_names(tmp_path, kind, values, name):
    mask = np.array([values], np.uint8)
    image = encode_image(np.full((1, 4, 3), 90, np.uint8), "png")
    for split in ("train", "val"):
        stem = f"{split}/ulm/ulm_000000_000019"
        base = f"gtFine/{stem}_gtFine"
        put(tmp_path, {f"leftImg8bit/{stem}_leftImg8bit.png": image, f"{base}_{kind}.png": png(mask)})
        put(tmp_path, {f"{base}_color.png": colour_png(mask // 255), f"{base}_instanceIds.png": png(mask)})
    assert guessed(tmp_path) == ("masks", "segmentation")
    found = read_back(MasksImporter(), tmp_path)
    assert {split for split, _parts, _label in found.samples.values()} == {"train", "val"}
    assert set(map(tuple, (rows[0] for rows in masks_of(found).values()))) == {tuple(values)}
    assert found.schema.class_names[values[2]] == name
    assert found.schema.ignore_class == (255 if 255 in values else None)
    assert found.problems == []
