#!/usr/bin/env python3
"""How many kernels a model takes, beside its operators and beside what ONNX Runtime makes of it.

usage: kernels_beside_ort.py FUSEWISE MODEL_OR_FOLDER... [--threads N] [--csv FILE]

One line per model: the operators of the file (those in bodies of control flow, too; constants and identities left
out), the nodes of ONNX Runtime's model after all of its own optimisation on the CPU, and the kernels and phases that a
run of ours takes, with fusion on and with one kernel per operator; behind them the steps of a run that no kernel does
(host steps), how often which. A model is run on the inputs recorded beside it: MODEL.in/*.npy, or inputs.json with a
shape, a type and a range for each; else on random ones. Needs the Python packages numpy, onnx and onnxruntime.
"""

import argparse
import collections
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

NOT_WORK = {"Constant", "Identity"}


def count_nodes(graph):
    total = 0
    for node in graph.node:
        total += node.op_type not in NOT_WORK
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                total += count_nodes(attribute.g)
    return total


def nodes_of_onnx_runtime(path, folder):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 4
    # Weights go to a file beside the model: one message holds at most two gigabytes.
    options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights")
    onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    model = onnx.load(folder / "optimised.onnx", load_external_data=False)
    return count_nodes(model.graph)


def recorded_inputs(path, folder):
    """A folder of the inputs recorded beside the model, or None."""
    beside = path.with_suffix(".in")
    if beside.is_dir():
        return beside
    listing = path.parent / "inputs.json"
    recorded = json.loads(listing.read_text()) if listing.exists() else {}
    if path.name not in recorded:
        return None
    random = numpy.random.default_rng(0)
    for name, kind in recorded[path.name].items():
        low, high = kind["range"]
        real = kind["dtype"].startswith("float")
        shape = kind["shape"]
        values = random.uniform(low, high, shape) if real else random.integers(low, high + 1, shape)
        numpy.save(folder / (name.replace("/", "_").replace(":", "_") + ".npy"),
                   numpy.asarray(values).astype(kind["dtype"]))
    return folder


def run_of_fusewise(fusewise, path, fusion, threads):
    command = [fusewise, "bench", path, "--fusion", fusion, "--threads", threads, "--iterations", "1", "--warmup", "0"]
    with tempfile.TemporaryDirectory() as folder:
        inputs = recorded_inputs(path, pathlib.Path(folder))
        command += ["--json", "--quiet"] + (["--inputs", inputs] if inputs else [])
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        errors = [line for line in result.stderr.splitlines() if line.startswith("error")]
        return None, errors[0] if errors else f"ended with {result.returncode}"
    return json.loads(result.stdout.splitlines()[-1]), ""


def row_of(fusewise, path, threads):
    row = {"model": path.stem, "operators": count_nodes(onnx.load(path, load_external_data=False).graph)}
    with tempfile.TemporaryDirectory() as folder:
        try:
            row["onnxruntime"] = nodes_of_onnx_runtime(path, pathlib.Path(folder))
        except Exception as error:  # a model that it refuses has no count
            row["onnxruntime"] = "-"
            print(f"{path.name}: ONNX Runtime: {str(error).splitlines()[0]}", file=sys.stderr)
    steps = "-"
    for fusion, suffix in (("operators", " unfused"), ("on", "")):
        run, problem = run_of_fusewise(fusewise, path, fusion, threads)
        row["kernels" + suffix] = run["kernels"] if run else "-"
        row["phases" + suffix] = run["phases"] if run else "-"
        if problem:
            print(f"{path.name}: {problem}", file=sys.stderr)
        elif fusion == "on":
            count = collections.Counter(run["host_functions"])
            steps = " ".join(f"{name} x{n}" for name, n in sorted(count.items())) or "none"
    row["host steps"] = steps
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fusewise")
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--threads", default="2")
    parser.add_argument("--csv", type=pathlib.Path)
    arguments = parser.parse_args()
    paths = []
    for model in arguments.models:
        paths += sorted(model.rglob("*.onnx")) if model.is_dir() else [model]
    if not paths:
        sys.exit("no .onnx file there")
    rows = []
    for path in paths:
        rows.append(row_of(arguments.fusewise, path, arguments.threads))
        if len(rows) == 1:
            print("  ".join(f"{name:>16}" for name in rows[0]))
        print("  ".join(f"{str(value):>16}" for value in rows[-1].values()), flush=True)
    if arguments.csv:
        with open(arguments.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
