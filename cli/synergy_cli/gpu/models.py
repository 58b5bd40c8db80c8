"""Small PyTorch models for measurements. The convolutional ones take images of 32 x 32 pixels, as CIFAR-10's are.

ResNet, VGG and SE-ResNet are the families that the co-location thesis measured (chapter 4).
"""

from collections.abc import Callable
from typing import Any

CLASSES = 10
_LENGTH, _WIDTH = 64, 256
_VGG_11 = (64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0)
"""Channels of VGG-11's convolutions; 0 is a pooling layer."""
_RESNET_18 = ((64, 1), (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), (512, 1))
"""Channels and stride of ResNet-18's blocks."""
_SQUEEZE = 16
"""By how much squeeze-and-excitation narrows the channels."""

Inputs = Callable[[int], Any]
"""A batch of inputs of so many samples."""


def build(torch: Any, name: str) -> tuple[Any, Inputs]:
    """The model, and its inputs. Raises ValueError for a name that is not in MODELS."""
    make = _BUILDERS.get(name)
    if make is None:
        raise ValueError(f"model {name!r} is not there; choose one of {', '.join(MODELS)}")
    return make(torch)


def _mlp(torch: Any) -> tuple[Any, Inputs]:
    nn = torch.nn
    layers = [nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, CLASSES)]
    return nn.Sequential(*layers), lambda batch: torch.randn(batch, 784)


def _cnn(torch: Any) -> tuple[Any, Inputs]:
    nn = torch.nn
    layers: list[Any] = []
    for before, after in ((3, 64), (64, 128), (128, 256)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)]
    layers += [nn.Flatten(), nn.Linear(256 * 16, CLASSES)]
    return nn.Sequential(*layers), _images(torch)


def _lstm(torch: Any) -> tuple[Any, Inputs]:
    return _Last(torch, torch.nn.LSTM(_WIDTH, _WIDTH, 2, batch_first=True)), _sequences(torch)


def _transformer(torch: Any) -> tuple[Any, Inputs]:
    layer = torch.nn.TransformerEncoderLayer(_WIDTH, 4, 4 * _WIDTH, batch_first=True)
    return _Last(torch, torch.nn.TransformerEncoder(layer, 4)), _sequences(torch)


def _vgg(torch: Any) -> tuple[Any, Inputs]:
    """VGG-11 with batch normalisation."""
    nn = torch.nn
    layers: list[Any] = []
    before = 3
    for after in _VGG_11:
        if after == 0:
            layers.append(nn.MaxPool2d(2))
            continue
        layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        before = after
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(before, CLASSES)), _images(torch)


def _resnet(torch: Any) -> tuple[Any, Inputs]:
    """ResNet-18 with the first layer for small images."""
    return _residual(torch, squeeze=False), _images(torch)


def _se_resnet(torch: Any) -> tuple[Any, Inputs]:
    """ResNet-18 with squeeze-and-excitation in each block."""
    return _residual(torch, squeeze=True), _images(torch)


def _images(torch: Any) -> Inputs:
    return lambda batch: torch.randn(batch, 3, 32, 32)


def _sequences(torch: Any) -> Inputs:
    return lambda batch: torch.randn(batch, _LENGTH, _WIDTH)


def _residual(torch: Any, *, squeeze: bool) -> Any:
    nn = torch.nn
    layers: list[Any] = [nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64), nn.ReLU()]
    before = 64
    for after, stride in _RESNET_18:
        layers.append(_Block(torch, before, after, stride, squeeze=squeeze))
        before = after
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, CLASSES))


def _Block(torch: Any, before: int, after: int, stride: int, *, squeeze: bool) -> Any:  # noqa: N802 - as _Last
    """A basic block of a ResNet."""
    nn = torch.nn

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(before, after, 3, stride, 1, bias=False),
                nn.BatchNorm2d(after),
                nn.ReLU(),
                nn.Conv2d(after, after, 3, padding=1, bias=False),
                nn.BatchNorm2d(after),
            )
            same = stride == 1 and before == after
            self.short = nn.Identity() if same else nn.Sequential(
                nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after)
            )  # fmt: skip
            narrow = after // _SQUEEZE
            self.scale = nn.Sequential(
                nn.AdaptiveAvgPool2d(1),
                nn.Conv2d(after, narrow, 1),
                nn.ReLU(),
                nn.Conv2d(narrow, after, 1),
                nn.Sigmoid(),
            ) if squeeze else None  # fmt: skip

        def forward(self, inputs: Any) -> Any:
            outputs = self.body(inputs)
            if self.scale is not None:
                outputs = outputs * self.scale(outputs)
            return torch.relu(outputs + self.short(inputs))

    return Block()


def _Last(torch: Any, inner: Any) -> Any:  # noqa: N802 - it makes a class of a library that may not be there
    """A sequence model with classes of the last position."""

    class Last(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.head = inner, torch.nn.Linear(_WIDTH, CLASSES)

        def forward(self, inputs: Any) -> Any:
            outputs = self.inner(inputs)
            return self.head((outputs[0] if isinstance(outputs, tuple) else outputs)[:, -1])

    return Last()


_BUILDERS: dict[str, Callable[[Any], tuple[Any, Inputs]]] = {
    "resnet": _resnet,
    "vgg": _vgg,
    "se-resnet": _se_resnet,
    "transformer": _transformer,
    "mlp": _mlp,
    "cnn": _cnn,
    "lstm": _lstm,
}
MODELS = tuple(_BUILDERS)
