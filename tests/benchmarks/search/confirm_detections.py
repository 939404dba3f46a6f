"""Confirms found inputs of detectors without EdgeFlare: its own decoding, suppression and matching.

python tests/benchmarks/search/confirm_detections.py --data FOLDER FINDINGS [--count 30]

FINDINGS has what `detection_search.py --confirm` wrote. Each input is given to both models again. A
finding is confirmed where the sets of objects differ: an object of one model that has no box of the
other's with its class and an IoU of at least .5 (lost or ghost), one whose box has another class, or
one whose box has an IoU below .75; where neither score is within .001 of the confidence, nor the
IoU of its bound, as far as it decides. Seeds are to agree. Imports onnxruntime, numpy and cv2.
"""

import argparse
from pathlib import Path

import cv2
import numpy as np
import onnxruntime

FLOOR = 1e-3
SHIFT = 0.75
MATCH = 0.5


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def run(model, value):
    return [
        np.asarray(one, np.float64)
        for one in model.run(None, {model.get_inputs()[0].name: np.ascontiguousarray(value)})
    ]


def fastestdet(model, image):
    value = (image[..., ::-1].astype(np.float32) / np.float32(255)).transpose(2, 0, 1)[None]
    (grid,) = run(model, value)
    grid = grid[0]
    side = grid.shape[-1]
    boxes, labels, scores = [], [], []
    for row in range(side):
        for column in range(side):
            cell = grid[:, row, column]
            label = int(cell[5:].argmax())
            x = (column + np.tanh(cell[1])) / side
            y = (row + np.tanh(cell[2])) / side
            w, h = 1 / (1 + np.exp(-cell[3])), 1 / (1 + np.exp(-cell[4]))
            boxes.append((x - w / 2, y - h / 2, x + w / 2, y + h / 2))
            labels.append(label)
            scores.append(max(cell[0], 0) ** 0.6 * max(cell[5 + label], 0) ** 0.4)
    return kept(boxes, labels, scores, 0.65, 0.45)


def rfb320(model, image):
    value = ((image.astype(np.float32) - 127) / np.float32(128)).transpose(2, 0, 1)[None]
    outputs = run(model, value)
    scores = next(one for one in outputs if one.shape[-1] == 2)[0, :, 1]
    boxes = next(one for one in outputs if one.shape[-1] == 4)[0]
    return kept(boxes, np.zeros(len(scores), int), scores, 0.7, 0.3)


DETECTORS = {"fastestdet": (fastestdet, (352, 352), 0.65), "rfb320": (rfb320, (320, 240), 0.7)}


def iou(one, other):
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(width, 0) * max(height, 0)
    areas = [max(box[2] - box[0], 0) * max(box[3] - box[1], 0) for box in (one, other)]
    return shared / (sum(areas) - shared) if sum(areas) > shared else 0.0


def kept(boxes, labels, scores, confidence, bound):
    """Return (box, class, score) after suppression, the best first, down to a fourth of the confidence."""
    order = sorted(
        (place for place in range(len(scores)) if scores[place] >= confidence / 4),
        key=lambda place: -scores[place],
    )
    found = []
    for place in order:
        if all(one[1] != labels[place] or iou(one[0], boxes[place]) <= bound for one in found):
            found.append((tuple(boxes[place]), int(labels[place]), float(scores[place])))
    return found


def differences(ours, theirs, confidence):
    """Return the kind and margin of each difference of two lists of objects."""
    detected = [[one for one in some if one[2] >= confidence] for some in (ours, theirs)]
    free = list(detected[1])
    pairs, left = [], []
    for across in (False, True):
        rest, left = (left if across else detected[0]), []
        for one in rest:
            fitting = [
                other
                for other in free
                if iou(one[0], other[0]) >= MATCH and (across or other[1] == one[1])
            ]
            if fitting:
                best = max(fitting, key=lambda other: iou(one[0], other[0]))
                free.remove(best)
                pairs.append((one, best))
            else:
                left.append(one)
    found = []
    for kind, alone, others, unmatched in (
        ("lost", left, theirs, free), ("ghost", free, ours, left)
    ):  # fmt: skip
        for one in alone:
            near = [
                other[2]
                for other in others
                if other[1] == one[1] and iou(one[0], other[0]) >= MATCH and other[2] < confidence
            ]
            apart = [MATCH - iou(one[0], other[0]) for other in unmatched if other[1] == one[1]]
            most = max(0.0, min(apart, default=1.0))
            margins = one[2] - confidence, confidence - max(near, default=0.0)
            found.append((kind, min(*margins, most)))
    for one, other in pairs:
        margin = min(one[2], other[2]) - confidence
        overlap = iou(one[0], other[0])
        if one[1] != other[1]:
            found.append(("class", margin))
        elif overlap < SHIFT:
            found.append(("shift", min(margin, SHIFT - overlap)))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("findings", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--count", type=int, default=30)
    arguments = parser.parse_args()
    files = sorted(arguments.findings.glob("*.npz"))
    places = np.linspace(0, len(files) - 1, min(arguments.count, len(files))).astype(int)
    models, confirmed = {}, 0
    for place in places:
        with np.load(files[place]) as archive:
            name, copy, seed = (str(archive[key]) for key in ("detector", "copy", "seed"))
            sample = archive["sample"]
            scores = [archive[f"{side}_scores"] for side in ("original", "deployed")]
        answer, size, confidence = DETECTORS[name]
        for file in (f"{name}_fp32", f"{name}_int8_{copy}"):
            if file not in models:
                models[file] = session(arguments.data / "models" / "detection" / f"{file}.onnx")
        pair = [models[f"{name}_fp32"], models[f"{name}_int8_{copy}"]]
        photo = cv2.imread(str(arguments.data / "images" / "photos_detection" / f"{seed}.jpg"))
        photo = cv2.resize(photo, size, interpolation=cv2.INTER_LINEAR)[..., ::-1]
        before, after = ([answer(one, image) for one in pair] for image in (photo, sample))
        natural = [one for one in differences(*before, confidence) if one[1] >= FLOOR]
        worst = max(differences(*after, confidence), key=lambda one: one[1], default=("none", 0.0))
        stored = [some[some >= confidence] for some in scores]
        again = [np.array([one[2] for one in found if one[2] >= confidence]) for found in after]
        same = all(len(one) == len(other) for one, other in zip(stored, again, strict=True))
        off = (
            max(
                (
                    np.abs(one - other).max(initial=0.0)
                    for one, other in zip(stored, again, strict=True)
                ),
                default=0.0,
            )
            if same
            else 1.0
        )
        good = not natural and worst[1] >= FLOOR and off < FLOOR
        confirmed += good
        print(
            f"{files[place].stem}: {worst[0]}, margin {worst[1]:.4f}, scores within {off:.1e}"
            + ("" if good else ", NOT CONFIRMED")
        )
    print(f"{confirmed} of {len(places)} confirmed")


if __name__ == "__main__":
    main()
