"""The search as a user of the library writes it; run as a program, and read by mypy."""

import sys

import edgeflare

original, deployed, seeds, folder = sys.argv[1:]
result = edgeflare.search(
    original=original, deployed=deployed, seeds=seeds, device="local", max_queries=400
)
for trigger in result.triggers:
    print(
        trigger.seed_id,
        trigger.sample.shape,
        trigger.original_label,
        trigger.deployed_label,
        trigger.margin,
    )
result.save(folder)
