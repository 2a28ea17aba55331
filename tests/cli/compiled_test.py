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
        for hit, options in ((False, []), (True, ["--dim", "seq=9"]), (False, ["--static"]), (True, ["--static"]),
                             (False, ["--static", "--dim", "seq=9"])):
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
