#!/usr/bin/env python3
"""How many kernels a model takes, beside its operators and beside what ONNX Runtime makes of it.

usage: kernels_beside_ort.py FUSEWISE MODEL_OR_FOLDER... [--threads N] [--csv FILE]

One line per model: the operators of the file (those in bodies of control flow, too; constants and identities left
out), the nodes of ONNX Runtime's model after all of its own optimisation on the CPU, and the kernels and phases of our
plans, with fusion on and with one kernel per operator. Needs the Python packages onnx and onnxruntime.
"""

import argparse
import csv
import json
import pathlib
import subprocess
import sys
import tempfile

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


def plan_of_fusewise(fusewise, path, fusion, threads):
    command = [fusewise, "plan", path, "--fusion", fusion, "--threads", threads, "--json", "--quiet"]
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        return None, lines[0] if lines else f"ended with {result.returncode}"
    return json.loads(result.stdout.splitlines()[-1]), ""


def row_of(fusewise, path, threads):
    row = {"model": path.stem, "operators": count_nodes(onnx.load(path, load_external_data=False).graph)}
    with tempfile.TemporaryDirectory() as folder:
        try:
            row["onnxruntime"] = nodes_of_onnx_runtime(path, pathlib.Path(folder))
        except Exception as error:  # a model that it refuses has no count
            row["onnxruntime"] = "-"
            print(f"{path.name}: ONNX Runtime: {str(error).splitlines()[0]}", file=sys.stderr)
    for fusion, suffix in (("on", ""), ("operators", " unfused")):
        plan, problem = plan_of_fusewise(fusewise, path, fusion, threads)
        row["kernels" + suffix] = plan["kernels"] if plan else "-"
        row["phases" + suffix] = plan["phases"] if plan else "-"
        if problem:
            print(f"{path.name}: {problem}", file=sys.stderr)
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
