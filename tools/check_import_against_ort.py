#!/usr/bin/env python3
"""The importer against ONNX Runtime: the reference interpreter runs the imported graph, and the results are compared.

    tools/check_import_against_ort.py FUSEWISE [MODEL.onnx ...]

Without models, every tiny model of the zoo. A model's inputs come from the folder MODEL.in (NAME.npy) where there is
one, otherwise they are random, with symbols set to 3. Exits with 1 when a model is off, and with 77 when numpy, onnx or
onnxruntime is absent.
"""
import json, pathlib, subprocess, sys, tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime as ort
except ImportError as error:
    print(f"nothing was compared: {error}")
    sys.exit(77)

TOLERANCE = 1e-4  # of the largest value of an output


def random_inputs(path):
    model = onnx.load(path, load_external_data=False)
    known = {t.name for t in model.graph.initializer}
    random = np.random.default_rng(0)
    feeds = {}
    for value in model.graph.input:
        if value.name in known:
            continue
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.HasField("dim_value") else 3 for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype.kind == "f":
            feeds[value.name] = random.standard_normal(shape).astype(dtype)
        else:
            feeds[value.name] = random.integers(0, 2, shape).astype(dtype)
    return feeds


def inputs_of(path):
    folder = path.with_suffix(".in")
    return {p.stem: np.load(p) for p in folder.glob("*.npy")} if folder.is_dir() else random_inputs(path)


def interpreted(fusewise, path, feeds, work):
    for name, array in feeds.items():
        np.save(work / (name.replace("/", "_").replace(":", "_") + ".npy"), array)
    out = work / "out"
    command = [fusewise, "run", str(path), "--interpreter", "--quiet", "--inputs", str(work), "--output-dir", str(out)]
    subprocess.run(command, check=True)
    return [np.load(out / o["file"]) for o in json.load(open(out / "outputs.json"))]


def largest_error(ours, theirs):
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if a.shape != b.shape or a.dtype != b.dtype:
            return float("inf")
        if b.dtype.kind != "f":
            worst = max(worst, 0.0 if np.array_equal(a, b) else float("inf"))
        elif b.size:
            if not np.array_equal(np.isnan(a), np.isnan(b)):
                return float("inf")
            difference = np.nan_to_num(np.abs(a.astype(float) - b.astype(float)))
            worst = max(worst, float(difference.max() / max(np.nanmax(np.abs(b)), 1e-30)))
    return worst


def check(fusewise, path):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    feeds = inputs_of(path)
    theirs = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"]).run(None, feeds)
    with tempfile.TemporaryDirectory() as work:
        error = largest_error(interpreted(fusewise, path, feeds, pathlib.Path(work)), theirs)
    good = error <= TOLERANCE
    print(f"{'ok ' if good else 'OFF'} {path.name}: {error:.2g} of the largest value")
    return good


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    fusewise = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        models = [pathlib.Path(p) for p in sys.argv[2:]]
        if not models:
            text = subprocess.run([fusewise, "zoo"], check=True, capture_output=True, text=True).stdout
            for name in dict.fromkeys(w for w in text.split() if w.endswith("_tiny")):
                models.append(pathlib.Path(folder) / f"{name}.onnx")
                subprocess.run([fusewise, "zoo", name, "-o", str(models[-1]), "--quiet"], check=True)
        results = [check(fusewise, path) for path in models]
    print(f"{sum(results)} of {len(results)} models agree")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
