"""The commented ``campaign.toml`` that ``edgeflare init`` writes."""

from pathlib import Path

from edgeflare.errors import UsageError

STARTER = """\
# An EdgeFlare campaign. Run it with: edgeflare run campaign.toml
# Relative paths start at this file's folder. Flags of `edgeflare run` win over what stands here.

devices = ["local"]         # "local", names in devices.toml, "ssh://user@host:port", "adb://serial"; several share the seeds
# original_timeout_s = 60   # seconds that loading the original here, or one inference of it, may take
# python = "/home/pi/venv/bin/python"   # the devices' Python command, over the inventory's
# inventory = "devices.toml"
# out = "campaigns/first"   # where the campaign's folder is made; by default under campaigns/
# concurrency = 16          # searches in flight on each device; by default as many as keep it busy
# one_trip = false          # gather what all searches ask a device into few large requests
# control = true            # then search the original against itself: every trigger there is a false alarm
# control_model = "float.tflite"  # that against a float copy
# allow_disagreement = false  # go on although the seeds already disagree suspiciously often

[original]                  # the model that the deployed one was made from; runs on this machine
path = "original.onnx"      # .onnx or .tflite
# output = "auto"           # "probabilities", "logits", "transcript", or "auto": told from the seeds
# decoder = { kind = "ctc", vocabulary = "tokens.txt", space = "|" }  # of recognisers whose file doesn't tell
# output_name = "logits"    # where the model has several outputs
# options = { threads = 1 }

[original.input]            # only what the file itself doesn't tell: what is stated here wins over it
# scale = "1/255"           # value = (pixel * scale - mean) / std, pixels are 0..255; "1" leaves them so
# mean = [0.485, 0.456, 0.406]
# std = [0.229, 0.224, 0.225]
# color = "RGB"             # or "BGR"
# layout = "HWC"            # or "CHW"
# size = [224, 224]         # height, width, where the file leaves them open
# front_end = "whisper"     # of audio, in place of all these: "mlperf-tiny-kws", "whisper", "waveform", ...

[deployed]                  # the compressed model; runs on the device
path = "deployed.tflite"
# runtime = "tflite"        # or "onnx", "tensorrt"; by default by the file's extension
# output = "label"          # it returns a class index and no scores; told by itself from a single integer
# options = { threads = 1, delegate = true, kernels = "default" }

[deployed.input]            # likewise; an integer model's quantisation usually tells the scale
# scale = "1/255"           # what neither file tells of it is taken from the other model
# resize = "bilinear"       # where this model's input size differs from the samples'; "bilinear-antialias" as in PIL

[seeds]
path = "seeds"              # a folder of images or audio, one file, or an .npz with `images` or `audio`
# resize = "bilinear"       # for images of other sizes: "nearest", "bilinear-antialias", "area", "bicubic", "crop"
# cut = "windows"           # "first" or "windows": for audio longer than the model takes
# resample = true           # audio of other rates is resampled
# labels = "labels.json"    # maps class folders to class numbers
# limit = 100               # only the first so many

[search]
strategy = "boundary"       # our own, fewest device queries; "dflare": mutation as in the DFLARE paper
seed = 0                    # fixes all randomness: same models, device and kind of CPU here: same triggers
max_queries = 2000          # search queries for each seed; 0: no limit
# max_host_queries = 1000000  # inputs given to the original alone, for each seed; 0: no limit
timeout_s = 180             # seconds for each seed, waiting in queues not counted; 0: no limit
margin_floor = 1e-3         # both models' top-1 probability is so far above their second, or it is no finding
# oracle = "auto"           # "label", "transcript", "tolerance" (scores further apart than tolerance = 0.1 deviate)
confirmations = 2           # how often a triggering input is sent again before it counts
# options = { device_budget = 20, max_l2 = 2.0 }  # 20 queries a seed: the most severe finding within L2 2
# operators = ["gaussian-noise", "median-blur"]   # dflare's, in place of those of its variant

[fleet]                     # where there are several devices
mode = "split"              # share the seeds; "replicate": every device searches from every seed
# allow_mixed = false       # let devices that differ share the seeds; results then depend on who took which
# device_queries = 100000   # once a device was asked so often, no new search begins on it
# total_queries = 1000000   # the same for all devices together
# handover_s = 30           # a device away for so long hands its seeds to the others
# patience_s = 600          # no device left for so long: the campaign pauses; `edgeflare resume` goes on

[limits]                    # what the results must keep to: `edgeflare run` ends with exit code 1 where one is crossed
# max_deviation_rate = 0.9  # of the searched seeds, the share with a triggering input
# max_seed_deviation_rate = 0.02  # of all seeds, the share on which the models differ as they are
# min_median_queries = 5    # search queries to a seed's first triggering input; without one: more than any
# min_l2 = 0.5              # no triggering input is nearer to its seed (pixels from 0 to 1, samples from -1 to 1)
# max_severity = 0.3        # no triggering input whose smaller margin is larger; give the search a device_budget
# max_disagreement = 0.2    # none at which both models put a larger share of probability on different classes
# new_pairs = false         # no pair of classes deviates that doesn't in the baseline
# baseline = "campaigns/last-release"  # the folder of a finished campaign
# max_new_triggers = 0      # of a replay: inputs that deviate and did not before
"""


def write_starter(path: Path) -> None:
    """Write a commented campaign file. Raises UsageError where the file exists or can't be written."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(STARTER)
    except FileExistsError as error:
        raise UsageError(f"{path} exists; name another file, or edit that one") from error
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}") from error
