"""The command line's compiled runs: results, measurements, verdicts, the cache.

usage: compiled_test.py FUSEWISE [unittest arguments]
"""

import json
import os
import pathlib
import stat
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import cli_test
from cli_test import CommandLine, read_npy


class CompiledRuns(cli_test.Runs):
    mode = []


class Bench(CommandLine):
    def test_fields(self):
        document = self.run_json("bench", self.model(), "--iterations", "7", "--warmup", "0", "--percentile", "50,99.9")
        self.assertEqual(document["schema"], "fusewise.bench/1")
        wanted = {"times_ms", "latency_ms", "first_run_ms", "compile_ms", "load_ms", "cache_hit", "kernels", "phases",
                  "host_steps", "arena_bytes", "weights_bytes", "flops", "bytes_moved", "roofline_ms",
                  "peak_rss_bytes", "growth_rss_bytes", "threads", "target", "inputs"}
        self.assertEqual(wanted - set(document), set())
        self.assertEqual(len(document["times_ms"]), 7)
        self.assertEqual(document["latency_ms"]["min"], min(document["times_ms"]))
        self.assertEqual(document["latency_ms"]["max"], max(document["times_ms"]))
        self.assertEqual(document["latency_ms"]["median"], sorted(document["times_ms"])[3])
        self.assertEqual({"p50", "p90", "p95", "p99", "p99.9", "mean"} - set(document["latency_ms"]), set())
        self.assertEqual(document["threads"], 2)
        self.assertGreater(document["kernels"], 0)
        self.assertGreater(document["flops"], 0)

    def test_profile_lists_every_step(self):
        document = self.run_json("bench", self.model(), "--seconds", "0.05", "--warmup", "0", "--profile")
        self.assertEqual(len(document["profile"]), document["kernels"] + document["copies"])
        times = [row["ms"] for row in document["profile"]]
        self.assertEqual(times, sorted(times, reverse=True))
        self.assertIn("predicted", self.run_command("bench", self.model(), "--iterations", "1", "--profile").stdout)

    def test_several_shapes_with_one_executable(self):
        model = self.model("bert_base_tiny")
        names = ("input_ids", "attention_mask", "token_type_ids")
        lists = [option for name in names for option in ("--data-shape", f"{name}=1x3,2x8,1x64")]
        document = self.run_json("bench", model, "--iterations", "3", "--warmup", "0", *lists)
        self.assertEqual([row["inputs"]["input_ids"] for row in document["shapes"]],
                         ["int64[1, 3]", "int64[2, 8]", "int64[1, 64]"])
        for row in document["shapes"]:
            self.assertEqual(len(row["times_ms"]), 3)
            self.assertEqual({"latency_ms", "first_run_ms", "flops", "bytes_moved", "arena_bytes", "roofline_ms"}
                             - set(row), set())
        flops = [row["flops"] for row in document["shapes"]]
        self.assertEqual(flops, sorted(flops))
        self.assertEqual(document["times_ms"], document["shapes"][0]["times_ms"])
        text = self.run_command("bench", model, "--iterations", "1", "--warmup", "0", "--data-shape", "*=1x3,2x8").stdout
        self.assertEqual(text.count("input_ids int64"), 2)
        error = self.run_command("bench", model, "--data-shape", "input_idz=1x3", code=1).stderr
        self.assertIn("input_ids", error)
        self.run_command("bench", model, "--data-shape", "*=1x3x5,1x2x2", code=1)

    def test_a_trace_is_what_chrome_reads(self):
        document = self.run_json("bench", self.model(), "--iterations", "1", "--warmup", "0", "--trace", "trace.json")
        self.assertEqual(document["trace"], "trace.json")
        trace = json.loads((self.path / "trace.json").read_text())
        events = trace["traceEvents"]
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.assertEqual(sorted(names.values()), ["runs", "worker 0", "worker 1"])
        slices = [event for event in events if event["ph"] == "X"]
        for event in slices:
            self.assertGreaterEqual(event["ts"], 0)
            self.assertGreaterEqual(event["dur"], 0)
            self.assertIn(event["tid"], names)
        pieces = [event for event in slices if event["cat"] != "run"]
        steps = document["kernels"] + document["copies"]
        for run in range(3):
            of_run = [event for event in pieces if event["args"]["run"] == run]
            self.assertEqual({event["args"]["step"] for event in of_run}, set(range(steps)))
            # A step begins after the one before it has ended, and one worker does one thing at a time.
            for worker in (0, 1):
                own = [event for event in of_run if event["tid"] == worker]
                for before, after in zip(own, own[1:]):
                    self.assertLessEqual(before["ts"] + before["dur"], after["ts"] + 1e-3)
                    self.assertLessEqual(before["args"]["step"], after["args"]["step"])
        # Every block once: as many as the first run has, from 0 on.
        for step in range(steps):
            blocks = sorted((event["args"]["phase"], event["args"]["first_block"], event["args"]["blocks"])
                            for event in pieces if event["args"]["run"] == 0 and event["args"]["step"] == step)
            expected = {}
            for phase, first, count in blocks:
                self.assertEqual(first, expected.get(phase, 0))
                expected[phase] = first + count
        self.assertEqual(sum(event["cat"] == "run" for event in slices), 3)
        kernels = {event["name"] for event in pieces if event["cat"] == "kernel"}
        self.assertTrue(any("conv" in name for name in kernels), kernels)
        self.run_command("bench", self.model(), "--iterations", "1", "--trace", "no/such/folder/t.json", code=1)


class InPlace(CommandLine):
    model_and_sizes = ("gpt2_decode_tiny.onnx", "--dim", "past=60", "--dim", "batch=1")

    def test_a_growing_cache_is_not_moved(self):
        options = ("--iterations", "1", "--warmup", "0")
        copied = self.run_json("bench", *self.model_and_sizes, *options)
        grown = self.run_json("bench", *self.model_and_sizes, *options, "--in-place", "auto")
        self.assertLess(grown["bytes_moved"], copied["bytes_moved"])

    def test_results_are_the_same(self):
        for fusion in ("on", "operators", "off"):
            self.run_command("verify", *self.model_and_sizes, "--in-place", "auto", "--numerics", "strict", "--fusion",
                             fusion)

    def test_what_cannot_grow_is_code_1(self):
        self.run_command("run", self.model(), "--in-place", "auto", code=1)
        self.run_command("run", *self.model_and_sizes, "--in-place", "nobody=x", code=1)


class Verify(CommandLine):
    def test_the_interpreter_agrees(self):
        for numerics in ("default", "strict"):
            for fusion in ("on", "operators", "off"):
                document = self.run_json("verify", self.model(), "--numerics", numerics, "--fusion", fusion)
                self.assertEqual(document["verdict"], "passed")
                self.assertEqual([row["passed"] for row in document["outputs"]], [True])

    def test_against_files(self):
        self.run_command("run", self.model(), "--output-dir", "expected")
        self.run_command("verify", self.model(), "--against", "expected")
        path = self.path / "expected" / "0.npy"
        data = bytearray(path.read_bytes())
        data[-4:] = struct.pack("<f", 12345.0)
        path.write_bytes(data)
        document = self.run_json("verify", self.model(), "--against", "expected", code=5)
        self.assertEqual(document["verdict"], "failed")
        self.assertEqual(document["outputs"][0]["expected"], 12345.0)
        self.assertEqual(document["outputs"][0]["differing"], 1)
        self.run_command("verify", self.model(), "--against", "nothing", code=1)


    def test_names_that_belong_to_no_output_are_said(self):
        self.run_command("run", self.model(), "--output-dir", "named")
        path = self.path / "named" / "outputs.json"
        path.write_text(path.read_text().replace('"logits"', '"logit"'))
        result = self.run_command("verify", self.model(), "--against", "named", code=1)
        self.assertIn("'logits'", result.stderr)
        (self.path / "values.txt").write_text("1 2 3")
        self.assertIn("values.txt", self.run_command("verify", self.model(), "--against", "values.txt", code=1).stderr)

    def test_kernel_by_kernel(self):
        for options in ([], ["--numerics", "strict"], ["--tolerance", "1e-4"], ["--fusion", "operators"]):
            document = self.run_json("verify", self.model(), "--per-kernel", *options)
            self.assertEqual(document["verdict"], "passed")
            self.assertIsNone(document["first_off"])
            kernels = self.run_json("bench", self.model(), "--iterations", "1", "--warmup", "0", *options[:2]
                                    if options[:1] != ["--tolerance"] else [])["kernels"]
            self.assertGreaterEqual(len(document["kernels"]), kernels)
            for row in document["kernels"]:
                self.assertTrue(row["value"]["passed"])
                self.assertTrue(row["kernel"] and row["nodes"], row)
        # Rewrites round otherwise, which no kernel is to blame for.
        result = self.run_command("verify", self.model(), "--per-kernel", "--tolerance", "1e-12", "--cache", "off", code=5)
        self.assertIn("no kernel is to blame", result.stdout)

    def test_passes_by_name(self):
        for name in ("fold_constants", "share_loads"):
            self.assertEqual(self.run_json("verify", self.model(), "--disable-pass", name)["verdict"], "passed")
        result = self.run_command("run", self.model(), "--disable-pass", "nonsense", code=1)
        self.assertIn("nonsense", result.stderr)

    def test_a_failure_is_reduced(self):
        document = self.run_json("verify", self.model(), "--tolerance", "1e-12", "--reduce", "small.onnx", code=5)
        reduced = document["reduced"]
        self.assertLess(len(reduced["nodes"]), 5)
        self.assertGreater(reduced["nodes_before"], 40)
        self.assertTrue(reduced["complete"])
        self.assertEqual(reduced["model"], "small.onnx")
        # It fails alone, on the inputs that came with it.
        again = self.run_json("verify", "small.onnx", "--inputs", reduced["data"], "--tolerance", "1e-12", code=5)
        self.assertEqual(again["verdict"], "failed")
        self.run_command("verify", "small.onnx", "--inputs", reduced["data"], "--against", reduced["data"])
        first = (self.path / "small.onnx").read_bytes()
        self.run_json("verify", self.model(), "--tolerance", "1e-12", "--reduce", "small.onnx", code=5)
        self.assertEqual((self.path / "small.onnx").read_bytes(), first)

    def test_what_does_not_fail_is_not_reduced(self):
        document = self.run_json("verify", self.model(), "--reduce", "none.onnx")
        self.assertIsNone(document["reduced"])
        self.assertFalse((self.path / "none.onnx").exists())
        self.run_command("verify", "missing.onnx", "--reduce", "none.onnx", code=1)


class Plans(CommandLine):
    def test_a_plan_is_written_and_replayed(self):
        document = self.run_json("plan", self.model(), "-o", "plan.json")
        wanted = {"nodes", "groups", "predicted_ms", "lower_bound_ms", "gap", "candidates", "search",
                  "search_complete", "plan_ms"}
        self.assertEqual(wanted - set(document), set())
        json.loads((self.path / "plan.json").read_text())
        with_plan = self.run_json("run", self.model(), "--plan", "plan.json")
        self.assertEqual(with_plan["outputs"], self.run_json("run", self.model())["outputs"])
        self.run_command("run", self.model(), "--plan", "missing.json", code=1)
        (self.path / "broken.json").write_text("{")
        self.run_command("run", self.model(), "--plan", "broken.json", code=1)

    def test_plans_are_made_for_the_sizes_given(self):
        model = self.model("bert_base_tiny")
        sizes = [self.run_json("plan", model, "--shape", f"*=1x{length}")["predicted_ms"] for length in (2, 64, 512)]
        self.assertLess(sizes[0], sizes[1])
        self.assertLess(sizes[1], sizes[2])
        self.assertEqual(self.run_json("plan", model, "--dim", "batch=1", "--dim", "seq=64")["predicted_ms"], sizes[1])
        self.run_command("plan", model, "--shape", "input_ids=1x3x5", code=1)

    def test_explanations(self):
        rows = self.run_json("explain", self.model())["rows"]
        self.assertGreater(len(rows), 5)
        for row in rows:
            self.assertEqual({"from", "to", "fused", "reason", "ms_now", "ms_if_fused", "needs"} - set(row), set())
        self.assertEqual({row["fused"] for row in rows}, {True, False})
        pair = self.run_json("explain", self.model(), rows[0]["from"], rows[0]["to"])["rows"]
        self.assertEqual((len(pair), pair[0]["fused"]), (1, rows[0]["fused"]))
        self.assertTrue(self.run_command("explain", self.model(), rows[0]["from"]).stdout.strip())
        self.run_command("explain", self.model(), "no such node", code=1)

    def test_dumps(self):
        for stage in ("rewritten", "plan", "kernel", "llvm", "assembly"):
            self.assertTrue(self.run_command("dump", self.model(), "--stage", stage).stdout.strip(), stage)
        self.run_command("dump", self.model(), "--stage", "kernel", "--kernel", "no_such_kernel", code=1)


class Caching(CommandLine):
    def run_cached(self, folder, *arguments, **options):
        return self.run_json("run", self.model(), "--cache", self.path / folder, *arguments, **options)

    def test_a_second_run_finds_the_program(self):
        first, second = self.run_cached("warm"), self.run_cached("warm")
        self.assertEqual((first["cache_hit"], second["cache_hit"]), (False, True))
        self.assertEqual(first["outputs"], second["outputs"])
        self.assertEqual(second["compile_ms"], 0)
        for options in (["--numerics", "strict"], ["--fusion", "off"], ["--threads", "1"],
                        ["--target", "cpu:x86-64-v3"]):
            self.assertFalse(self.run_cached("warm", *options)["cache_hit"], options)
            self.assertTrue(self.run_cached("warm", *options)["cache_hit"], options)
        self.assertFalse(self.run_json("run", self.model(), "--cache", "off")["cache_hit"])
        # Plans are made for sizes, programs run in all of them.
        for hit, options in ((False, []), (False, ["--dim", "seq=9"]), (True, ["--dim", "seq=9"]), (True, []),
                             (False, ["--static"]), (True, ["--static"]), (False, ["--static", "--dim", "seq=9"])):
            document = self.run_json("run", self.model("bert_base_tiny"), "--cache", "warm", *options)
            self.assertEqual(document["cache_hit"], hit, options)

    def test_another_content_under_the_same_name_is_another_program(self):
        model = self.path / "changing.onnx"
        model.write_bytes(self.model().read_bytes())
        first = self.run_json("run", model, "--cache", "changing")
        data = bytearray(model.read_bytes())
        times = model.stat()
        # One weight changes; size and time do not.
        middle = data.find(b"fc.bias") if b"fc.bias" in data else len(data) // 2
        data[middle + 64] ^= 0x01
        model.write_bytes(data)
        os.utime(model, ns=(times.st_atime_ns, times.st_mtime_ns))
        result = self.run_static("run", model, "--cache", "changing", "--json")
        if result.returncode == 0:
            self.assertFalse(json.loads(result.stdout.splitlines()[-1])["cache_hit"])
        self.assertFalse(first["cache_hit"])

    def test_damaged_entries_are_made_anew(self):
        expected = self.run_cached("damaged")["outputs"]
        for damage in (lambda data: data[: len(data) // 2], lambda data: b"", lambda data: data[:-1] + b"x",
                       lambda data: data[:100] + b"\xff" * 8 + data[108:]):
            entries = list((self.path / "damaged" / "programs").glob("*.program"))
            self.assertEqual(len(entries), 1)
            entries[0].write_bytes(damage(entries[0].read_bytes()))
            again = self.run_cached("damaged")
            self.assertEqual((again["cache_hit"], again["outputs"]), (False, expected))
            self.assertTrue(self.run_cached("damaged")["cache_hit"])

    def test_a_folder_that_cannot_be_used_is_a_warning(self):
        (self.path / "file").write_text("no folder")
        result = self.run_command("run", self.model(), "--cache", "file/cache")
        self.assertIn("warning: the cache in file/cache is not used", result.stderr)
        open_folder = self.path / "open" / "programs"
        open_folder.mkdir(parents=True, exist_ok=True)
        open_folder.chmod(stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO)
        result = self.run_command("run", self.model(), "--cache", "open")
        self.assertIn("everybody may write", result.stderr)

    def test_many_processes_may_start_together(self):
        command = [cli_test.FUSEWISE, "run", str(self.model()), "--cache", str(self.path / "together"), "--json",
                   "--threads", "1"]
        processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      env=self.environment) for _ in range(16)]
        outputs = []
        for process in processes:
            out, err = process.communicate(timeout=300)
            self.assertEqual((process.returncode, err), (0, ""))
            outputs.append(json.loads(out.splitlines()[-1])["outputs"])
        self.assertTrue(all(output == outputs[0] for output in outputs))
        names = [path.name for path in (self.path / "together" / "programs").iterdir()]
        self.assertEqual(len(names), 1, names)

    def test_the_limit_evicts(self):
        limit = {"FUSEWISE_CACHE_LIMIT": "1"}
        for fusion in ("on", "operators", "off"):
            self.run_json("run", self.model(), "--cache", self.path / "small", "--fusion", fusion, env=limit)
            self.assertEqual(len(list((self.path / "small" / "programs").iterdir())), 1)


class Results(CommandLine):
    def outputs_of(self, folder, *arguments):
        self.run_command("run", *arguments, "--output-dir", folder)
        files = json.loads((self.path / folder / "outputs.json").read_text())
        return [read_npy(self.path / folder / row["file"]) for row in files]

    def test_strict_runs_equal_the_interpreter_bit_for_bit(self):
        for name, shape in (("resnet50_tiny", []), ("bert_base_tiny", ["--dim", "batch=2", "--dim", "seq=5"]),
                            ("gpt2_decode_tiny", ["--dim", "batch=1", "--dim", "past=7"])):
            model = [self.model(name), *shape]
            expected = self.outputs_of("interpreted", *model, "--interpreter")
            for options in (["--fusion", "on"], ["--fusion", "off", "--threads", "1"], ["--static"]):
                self.assertEqual(self.outputs_of("compiled", *model, "--numerics", "strict", *options), expected,
                                 (name, options))


if __name__ == "__main__":
    cli_test.FUSEWISE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
