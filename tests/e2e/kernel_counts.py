#!/usr/bin/env python3
"""Kernels and phases that the planner makes of models, against a recorded baseline, so that a change of the planner
shows what it does to them.

usage: kernel_counts.py FUSEWISE --check|--record [--models DIR]

The models are the embedded ones in their tiny sizes and, where ../shared/models/exported is, seven exported networks,
for which weights of the recorded mean and deviation are made up. --models takes exported ones with their weights from
a folder instead. The plans are made for one described machine and 4 threads, so that every machine gets the same.
"""

import argparse
import array
import csv
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BASELINE = ROOT / "tests" / "baselines" / "kernels.csv"
EXPORTED = ROOT.parent / "shared" / "models" / "exported"
NETWORKS = ("resnet50", "mobilenet_v2", "efficientnet_b0", "bert_base", "gpt2_prefill", "gpt2_decode", "unet")
FIELDS = ("model", "fusion", "nodes", "kernels", "phases", "once_groups")
TARGET = ("--target", "cpu:x86-64-v3", "--threads", "4")


def command(*arguments):
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"{' '.join(str(a) for a in arguments)} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def make_weights(spec, path):
    """Numbers of each tensor's mean and deviation, a few over and over: what they are does not matter to a plan, but
    equal tensors and those of 0 and 1 would."""
    with open(path, "wb") as out:
        out.truncate(spec["bytes"])
        for fill in spec["fills"]:
            draw = random.Random(fill["name"]).gauss
            few = (draw(fill["mean"], fill["std"]) for _ in range(101))
            numbers = array.array("f", (min(max(x, fill["min"]), fill["max"]) for x in few))
            if sys.byteorder == "big":
                numbers.byteswap()
            block = numbers.tobytes() * 1000
            out.seek(fill["offset"])
            left = fill["count"] * 4
            while left > 0:
                left -= out.write(block[:left])


def rows_of(fusewise, name, path):
    for fusion in ("on", "operators", "off"):
        arguments = ["plan", path, "--fusion", fusion, *TARGET, "--json", "--quiet"]
        document = json.loads(command(fusewise, *arguments).splitlines()[-1])
        yield {"model": name, "fusion": fusion, **{f: document[f] for f in FIELDS[2:]}}


def count(fusewise, models):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        names = [line.split()[0] for line in command(fusewise, "zoo").splitlines() if line.split()]
        for name in sorted(n for n in names if n.endswith("_tiny")):
            path = folder / f"{name}.onnx"
            command(fusewise, "zoo", name, "-o", path)
            rows += rows_of(fusewise, name, path)
        if not models and not (EXPORTED / "fills.json").exists():
            print(f"left out: the exported networks, because {EXPORTED} is not there")
            return rows
        fills = {} if models else json.loads((EXPORTED / "fills.json").read_text())
        for name in NETWORKS:
            if models:
                rows += rows_of(fusewise, name, models / f"{name}.onnx")
                continue
            path = folder / f"{name}.onnx"
            shutil.copyfile(EXPORTED / f"{name}.onnx", path)
            make_weights(fills[name], folder / f"{name}.bin")
            rows += rows_of(fusewise, name, path)
            (folder / f"{name}.bin").unlink()
    return rows


def check(rows):
    """More kernels or phases fail; other differences are only said."""
    with open(BASELINE, newline="") as file:
        known = {(r["model"], r["fusion"]): r for r in csv.DictReader(file)}
    differences, worse = [], 0
    for row in rows:
        before = known.get((row["model"], row["fusion"]))
        if before is None:
            differences.append(f"{row['model']} {row['fusion']}: not in the baseline")
            continue
        for field in FIELDS[2:]:
            if row[field] != int(before[field]):
                differences.append(f"{row['model']} {row['fusion']}: {field} {before[field]} -> {row[field]}")
                worse += field in ("kernels", "phases") and row[field] > int(before[field])
    print("\n".join(differences) if differences else f"{len(rows)} plans are as in the baseline")
    if differences:
        print(f"if that is meant: {HERE.relative_to(ROOT)}/kernel_counts.py FUSEWISE --record")
    return 1 if worse else 0


def record(rows):
    BASELINE.parent.mkdir(exist_ok=True)
    with open(BASELINE, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(f"recorded {len(rows)} plans")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fusewise", type=pathlib.Path)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--check", action="store_true")
    mode.add_argument("--record", action="store_true")
    parser.add_argument("--models", type=pathlib.Path)
    arguments = parser.parse_args()
    rows = count(arguments.fusewise.resolve(), arguments.models)
    return check(rows) if arguments.check else record(rows)


if __name__ == "__main__":
    sys.exit(main())
