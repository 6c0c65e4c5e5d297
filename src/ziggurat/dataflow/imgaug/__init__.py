"""Image augmentation: random augmentors, and the deterministic transforms that they draw.

An augmentor holds a policy. ``get_transform(img)`` draws once. The ``Transform`` that it returns is deterministic and
applies equally to images, points, boxes, polygons, keypoints and masks::

    policy = AugmentorList([Resize(256, mode="crop"), RandomCrop(224), Flip(horiz=True)])
    transform, image = policy.draw(image)
    boxes, kept = keep_boxes(transform.apply_boxes(boxes), image.shape)

``ziggurat.dataflow.augment`` has the pipeline stages. ``images.py`` defines the pixel convention and the types of
images; ``base.py`` describes the source of random numbers.
"""

from ziggurat.dataflow.imgaug.affine import (
    Affine,
    Rescale,
    Rotation,
    RotationAndCropValid,
    Shear,
    Shift,
    WarpAffineTransform,
)
from ziggurat.dataflow.imgaug.base import (
    Augmentor,
    ImageAugmentor,
    PhotometricAugmentor,
    PhotometricTransform,
    drawing_from,
)
from ziggurat.dataflow.imgaug.color import (
    Brightness,
    BrightnessScale,
    Clip,
    ColorSpace,
    Contrast,
    Gamma,
    Grayscale,
    Hue,
    HueSaturationValue,
    Lighting,
    MeanVarianceNormalize,
    MinMaxNormalize,
    Saturation,
    ToFloat32,
    ToUint8,
)
from ziggurat.dataflow.imgaug.compose import (
    AugmentorList,
    Identity,
    MapImage,
    RandomApply,
    RandomApplyAug,
    RandomChooseAug,
    RandomOrderAug,
)
from ziggurat.dataflow.imgaug.crop import (
    BackgroundFiller,
    CenterCrop,
    CenterPaste,
    ConstantBackgroundFiller,
    CropTransform,
    CutoutTransform,
    NoiseBackgroundFiller,
    PasteTransform,
    RandomCrop,
    RandomCutout,
    RandomPaste,
)
from ziggurat.dataflow.imgaug.flip import (
    Flip,
    FlipTransform,
    Rotation90,
    Rotation90Transform,
    Transpose,
    TransposeTransform,
)
from ziggurat.dataflow.imgaug.images import ImageError
from ziggurat.dataflow.imgaug.labels import (
    LabelError,
    box_areas,
    clip_boxes,
    clip_polygon,
    hide_keypoints,
    keep_boxes,
    polygon_area,
)
from ziggurat.dataflow.imgaug.mixing import CutMix, MixUp
from ziggurat.dataflow.imgaug.noise import GaussianBlur, GaussianNoise, JpegNoise, SaltPepperNoise
from ziggurat.dataflow.imgaug.resize import (
    GoogleNetRandomCropAndResize,
    RandomCropRandomShape,
    RandomResize,
    RandomResizedCrop,
    Resize,
    ResizeShortestEdge,
    ResizeTransform,
)
from ziggurat.dataflow.imgaug.transform import (
    NoOpTransform,
    PixelTransform,
    Transform,
    TransformFactory,
    TransformList,
    UnsupportedLabelError,
)

__all__ = [
    "Affine",
    "Augmentor",
    "AugmentorList",
    "BackgroundFiller",
    "Brightness",
    "BrightnessScale",
    "CenterCrop",
    "CenterPaste",
    "Clip",
    "ColorSpace",
    "ConstantBackgroundFiller",
    "Contrast",
    "CropTransform",
    "CutMix",
    "CutoutTransform",
    "Flip",
    "FlipTransform",
    "Gamma",
    "GaussianBlur",
    "GaussianNoise",
    "GoogleNetRandomCropAndResize",
    "Grayscale",
    "Hue",
    "HueSaturationValue",
    "Identity",
    "ImageAugmentor",
    "ImageError",
    "JpegNoise",
    "LabelError",
    "Lighting",
    "MapImage",
    "MeanVarianceNormalize",
    "MinMaxNormalize",
    "MixUp",
    "NoOpTransform",
    "NoiseBackgroundFiller",
    "PasteTransform",
    "PhotometricAugmentor",
    "PhotometricTransform",
    "PixelTransform",
    "RandomApply",
    "RandomApplyAug",
    "RandomChooseAug",
    "RandomCrop",
    "RandomCropRandomShape",
    "RandomCutout",
    "RandomOrderAug",
    "RandomPaste",
    "RandomResize",
    "RandomResizedCrop",
    "Rescale",
    "Resize",
    "ResizeShortestEdge",
    "ResizeTransform",
    "Rotation",
    "Rotation90",
    "Rotation90Transform",
    "RotationAndCropValid",
    "SaltPepperNoise",
    "Saturation",
    "Shear",
    "Shift",
    "ToFloat32",
    "ToUint8",
    "Transform",
    "TransformFactory",
    "TransformList",
    "Transpose",
    "TransposeTransform",
    "UnsupportedLabelError",
    "WarpAffineTransform",
    "box_areas",
    "clip_boxes",
    "clip_polygon",
    "drawing_from",
    "hide_keypoints",
    "keep_boxes",
    "polygon_area",
]
