"""The files of CIFAR-10 and CIFAR-100 with their checksums, and the names of the classes."""

from dataclasses import dataclass
from typing import Final

from gatefit.datasets.files import Layout, RawFile

_URL: Final = "https://www.cs.toronto.edu/~kriz/"


@dataclass(frozen=True)
class CifarFiles:
    """The layouts in which one of the sets may be found; the test samples are in the last batch."""

    batches: Layout
    archive: Layout
    arrays: Layout = ()


def _sha256(name: str, value: str, *folders: str) -> RawFile:
    return RawFile(name, (f"sha256:{value}",), folders)


_BIN: Final = ("cifar10/cifar-10-batches-bin", "cifar10", "cifar-10-batches-bin")

# The arrays hold exactly the bytes of the batches, so both layouts share one digest, that of the batches.
CIFAR10: Final = CifarFiles(
    batches=(
        _sha256("data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5", *_BIN),
        _sha256("data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed", *_BIN),
        _sha256("data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67", *_BIN),
        _sha256("data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48", *_BIN),
        _sha256("data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add", *_BIN),
        _sha256("test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b", *_BIN),
    ),
    archive=(
        RawFile(
            "cifar-10-binary.tar.gz",
            ("md5:c32a1d4ab5d03f1284b67883e8d87530",),
            ("cifar10",),
            (f"{_URL}cifar-10-binary.tar.gz", "md5:c32a1d4ab5d03f1284b67883e8d87530"),
        ),
    ),
    arrays=tuple(
        _sha256(name, value, "cifar10")
        for name, value in {
            "data_batch_1_images.npy.xz": "95cfc60b6a47f0c1fe9a24f559845fa4fe9060331f9b5dd7a9dfbf8985b4e209",
            "data_batch_2_images.npy.xz": "eb41affc4e56a6f19fdae6bfd52fbc74055ea09bfb2007c2c544b80c4f0d7b92",
            "data_batch_3_images.npy.xz": "a09133a19f2d9e625daa71503e671aaf89e7718358f928c92b533991b6b110ee",
            "data_batch_4_images.npy.xz": "637bd5fc32f4b3a368dfbc79a981b5b0af45b235ae1435141f1d8699ceedea31",
            "data_batch_5_images.npy.xz": "dfaeddfc8e86ae6dfe67bd5685d5b8a2d2b6f23b967518aa4ee2ea4f6b0598bb",
            "test_batch_images.npy.xz": "4f4c2e198f59fa355d168b74e6f5a3f83388e93bf3a0142793e0bd9af6077092",
            "train_labels.npy": "fad921ba16b0efeebb54393d1351545d1fe1a357f6f81324c821e3e11b956c70",
            "test_labels.npy": "19004b019bd095265b4ce6637c9ff979c66abcbc8e658a665f791b487cdea5eb",
        }.items()
    ),
)

_BIN100: Final = ("cifar100/cifar-100-binary", "cifar100", "cifar-100-binary")

CIFAR100: Final = CifarFiles(
    batches=(
        RawFile("train.bin", ("md5:6172c7755cfe09b2fe270c85cebc1b15",), _BIN100),
        RawFile("test.bin", ("md5:4499cfba6c016c1be1438163640a0898",), _BIN100),
    ),
    archive=(
        RawFile(
            "cifar-100-binary.tar.gz",
            ("md5:03b5dce01913d631647c71ecec9e9cb8",),
            ("cifar100",),
            (f"{_URL}cifar-100-binary.tar.gz", "md5:03b5dce01913d631647c71ecec9e9cb8"),
        ),
    ),
)

CIFAR10_CLASSES: Final = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip

CIFAR100_FINE: Final = tuple(
    """
    apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can castle
    caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin elephant
    flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster man maple_tree
    motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck pine_tree plain plate
    poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper snail snake spider
    squirrel streetcar sunflower sweet_pepper table tank telephone television tiger tractor train trout tulip turtle
    wardrobe whale willow_tree wolf woman worm
    """.split()  # noqa: SIM905
)

CIFAR100_COARSE: Final = tuple(
    """
    aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices household_furniture
    insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes large_omnivores_and_herbivores
    medium_mammals non-insect_invertebrates people reptiles small_mammals trees vehicles_1 vehicles_2
    """.split()  # noqa: SIM905
)
