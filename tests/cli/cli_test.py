"""The command line as its users meet it: exit codes, words, JSON, files. Needs nothing but Python itself.

usage: cli_test.py FUSEWISE [unittest arguments]
"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zipfile

FUSEWISE = ""


def npy(dtype, shape, data):
    """A .npy file: `dtype` such as '<f4', `data` its bytes."""
    header = repr({"descr": dtype, "fortran_order": False, "shape": tuple(shape)})
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def read_npy(path):
    data = path.read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10 : 10 + length].decode(), {"__builtins__": {}})
    return header["descr"], header["shape"], data[10 + length :]


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        cls.environment = dict(os.environ, FUSEWISE_CACHE_DIR=str(cls.path / "cache"), FUSEWISE_NUM_THREADS="2")
        for name in ("resnet50_tiny", "bert_base_tiny", "gpt2_decode_tiny"):
            cls.run_static("zoo", name, "-o", cls.path / f"{name}.onnx")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def run_static(cls, *arguments, **options):
        environment = dict(cls.environment, **options.pop("env", {}))
        return subprocess.run([FUSEWISE, *map(str, arguments)], text=True, capture_output=True, env=environment,
                              timeout=300, cwd=cls.path, **options)

    def run_command(self, *arguments, code=0, **options):
        result = self.run_static(*arguments, **options)
        self.assertEqual(result.returncode, code, f"{arguments}\n{result.stdout}\n{result.stderr}")
        if code in (1, 2, 3, 4):
            self.assertTrue(result.stderr.startswith("error: ") or "\nerror: " in result.stderr, result.stderr)
        return result

    def run_json(self, *arguments, code=0, **options):
        result = self.run_command(*arguments, "--json", code=code, **options)
        return json.loads(result.stdout.splitlines()[-1])

    def model(self, name="resnet50_tiny"):
        return self.path / f"{name}.onnx"


class Usage(CommandLine):
    def test_help_of_every_command_has_an_example(self):
        overview = self.run_command("--help").stdout
        commands = [line.split()[0] for line in overview.splitlines() if line.startswith("  ")]
        self.assertGreaterEqual(set(commands), {"bench", "dump", "explain", "inspect", "machine", "plan", "run",
                                                "test", "verify", "zoo"})
        self.assertEqual(commands, sorted(commands))
        for command in commands:
            text = self.run_command(command, "--help").stdout
            self.assertIn(f"fusewise {command}", text.split("Example:")[1])
            self.assertEqual(text, self.run_command("help", command).stdout)

    def test_wrong_usage_is_code_2(self):
        model = self.model()
        for arguments in ([], ["compute"], ["run"], ["run", model, "more"], ["run", model, "--no-such-flag"],
                          ["run", model, "--threads", "0"], ["run", model, "--threads", "many"],
                          ["run", model, "--fusion", "maybe"], ["run", model, "--numerics", "exact"],
                          ["run", model, "--shape", "x"], ["run", model, "--shape", "x=2xtwo"],
                          ["run", model, "--dim", "n=-1"], ["run", model, "--val-range", "x=1"],
                          ["run", model, "--val-range", "x=2,1"], ["run", model, "--input", "file.npy"],
                          ["run", model, "--target", "abacus"], ["bench", model, "--iterations", "0"],
                          ["bench", model, "--percentile", "101"], ["zoo", "resnet50_tiny"],
                          ["bench", model, "--data-shape", "image"],
                          ["bench", model, "--data-shape", "image=1xtwo"],
                          ["bench", model, "--data-shape", "a=1,2", "--data-shape", "b=1,2,3"],
                          ["bench", model, "--data-shape", "image=1x3x32x32", "--static"],
                          ["verify", model, "--reduce", "small.txt"],
                          ["verify", model, "--per-kernel", "--against", "there"],
                          ["verify", model, "--reduce", "small.onnx", "--outputs", "there"]):
            result = self.run_static(*arguments)
            self.assertEqual(result.returncode, 2, f"{arguments}: {result.stderr}")
            if arguments:
                self.assertIn("error: ", result.stderr)
        self.assertIn("did you mean 'bench'", self.run_command("bnech", code=2).stderr)

    def test_flags_of_other_programs_are_translated(self):
        for flag, advice in (("--fp16", "--precision"), ("--onnx=model.onnx", "after the command"),
                             ("--minShapes=x:1", "--shape"), ("-nthreads", "--threads")):
            error = self.run_command("run", self.model(), flag, code=2).stderr
            self.assertIn(flag.split("=")[0], error)
            self.assertIn(advice, error)
        self.assertIn("trtexec", self.run_command("--onnx=model.onnx", code=2).stderr)

    def test_what_is_not_there_yet_is_code_3(self):
        for options in (["--target", "cuda"], ["--precision", "f16"], ["--search", "evolve"]):
            self.run_command("run", self.model(), *options, code=3)

    def test_errors_as_json(self):
        error = self.run_json("run", "missing.onnx", code=1)["error"]
        self.assertEqual(error["file"], "missing.onnx")
        self.assertEqual(set(error), {"code", "message", "file", "node", "op", "hint"})
        self.assertEqual(self.run_json("run", self.model(), "--threads", "none", code=2)["error"]["code"], "usage")

    def test_output_that_cannot_be_written_is_an_error(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        with open("/dev/full", "w") as full:
            result = subprocess.run([FUSEWISE, "machine"], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot write to standard output", result.stderr)

    def test_an_interrupt_ends_with_code_130(self):
        process = subprocess.Popen([FUSEWISE, "bench", self.model(), "--seconds", "60", "--warmup", "60"],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=self.environment)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=20), 130)


class Looking(CommandLine):
    def test_inspect(self):
        described = self.run_json("inspect", self.model())
        self.assertEqual(described["schema"], "fusewise.inspect/1")
        self.assertEqual(described["unsupported"], [])
        self.assertGreater(described["operators"]["Conv"], 1)
        self.assertEqual(len(described["outputs"]), 1)
        self.assertIn("Conv", self.run_command("inspect", self.model()).stdout)
        self.assertIn("seq", self.run_json("inspect", self.model("bert_base_tiny"))["symbols"])

    def test_inspect_of_what_is_no_model(self):
        (self.path / "text.onnx").write_text("this is no model, but a text of some length")
        for name in ("text.onnx", ".", "missing.onnx"):
            self.assertIn(name, self.run_command("inspect", name, code=1).stderr)
        (self.path / "cut.onnx").write_bytes(self.model().read_bytes()[:-100])
        self.run_command("inspect", "cut.onnx", code=1)

    def test_zoo(self):
        listed = self.run_json("zoo")["models"]
        self.assertIn("resnet50", [model["name"] for model in listed])
        self.run_command("zoo", "resnet50_tiny", "-o", "twice.onnx")
        self.assertEqual((self.path / "twice.onnx").read_bytes(), self.model().read_bytes())
        self.run_command("zoo", "no_such_model", "-o", "x.onnx", code=1)
        self.assertFalse((self.path / "x.onnx").exists())
        self.run_command("zoo", "resnet50_tiny", "-o", "no/such/folder/x.onnx", code=1)

    def test_machine_reads_what_it_prints(self):
        text = self.run_command("machine").stdout
        (self.path / "mine.txt").write_text(text)
        self.assertEqual(self.run_command("machine", "--machine", "mine.txt").stdout, text)
        (self.path / "broken.txt").write_text("cores = many\n")
        self.assertIn("broken.txt", self.run_command("machine", "--machine", "broken.txt", code=1).stderr)
        self.assertGreater(self.run_json("machine")["cores"], 0)
        self.assertEqual(self.run_json("machine", "--target", "cpu:x86-64-v3")["vector_bits"], 256)

    def test_dump_of_the_graph(self):
        self.assertTrue(self.run_command("dump", self.model(), "--stage", "graph").stdout.startswith("graph "))


class Runs(CommandLine):
    # Runs of the interpreter and of compiled code obey the same options.
    mode = ["--interpreter"]

    def run_model(self, name, *arguments, **options):
        return self.run_json("run", self.model(name), *self.mode, *arguments, **options)

    def test_outputs_are_summarised_and_written(self):
        for format in ("npy", "pb"):
            document = self.run_model("resnet50_tiny", "--output-dir", f"out/{format}", "--output-format", format)
            self.assertEqual(document["schema"], "fusewise.run/1")
            listed = json.loads((self.path / "out" / format / "outputs.json").read_text())
            self.assertEqual([row["name"] for row in listed], [row["name"] for row in document["outputs"]])
            self.assertEqual(set(listed[0]), {"name", "dtype", "shape", "file"})
            self.assertTrue((self.path / "out" / format / f"0.{format}").exists())
        dtype, shape, data = read_npy(self.path / "out/npy/0.npy")
        self.assertEqual((dtype, list(shape)), ("<f4", document["outputs"][0]["shape"]))
        values = struct.unpack(f"<{len(data) // 4}f", data)
        self.assertAlmostEqual(min(values), document["outputs"][0]["min"], places=6)
        self.assertIn(data, (self.path / "out/pb/0.pb").read_bytes())

    def test_onnx_tests(self):
        model = self.path / "suite" / "one" / "model.onnx"
        data = model.parent / "test_data_set_0"
        data.mkdir(parents=True, exist_ok=True)
        model.write_bytes(self.model().read_bytes())
        name = self.run_json("inspect", model)["inputs"][0]["name"]
        self.run_model("resnet50_tiny", "--output-dir", "results", "--output-format", "pb", "--output-tensor", name)
        (data / "output_0.pb").write_bytes((self.path / "results" / "0.pb").read_bytes())
        (data / "input_0.pb").write_bytes((self.path / "results" / "1.pb").read_bytes())
        broken = self.path / "suite" / "two"
        broken.mkdir(exist_ok=True)
        (broken / "model.onnx").write_bytes(b"no model")
        result = self.run_json("test", "suite/one", *self.mode)
        self.assertEqual((result["passed"], result["failed"], result["unsupported"]), (1, 0, 0))
        result = self.run_json("test", "suite", *self.mode, code=5)
        self.assertEqual((result["passed"], result["failed"], result["unsupported"]), (1, 1, 0))
        wrong = bytearray((data / "output_0.pb").read_bytes())
        wrong[-4:] = struct.pack("<f", 1e6)
        (data / "output_0.pb").write_bytes(wrong)
        self.run_command("test", "suite/one", *self.mode, code=5)
        self.run_command("test", "in", "no_such_folder", *self.mode, code=1)
        lines = self.run_command("test", "suite", *self.mode, code=5).stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["failed", "failed", "0"])
        self.assertEqual(lines[-1], "0 passed, 2 failed, 0 unsupported")

    def test_seed_and_shapes(self):
        first = self.run_model("bert_base_tiny", "--dim", "batch=2", "--dim", "seq=3")["outputs"]
        self.assertEqual(first, self.run_model("bert_base_tiny", "--shape", "*=2x3")["outputs"])
        self.assertNotEqual(first, self.run_model("bert_base_tiny", "--shape", "*=2x3", "--seed", "1")["outputs"])
        self.assertEqual(first[0]["shape"][:2], [2, 3])
        result = self.run_command("run", self.model("bert_base_tiny"), *self.mode)
        self.assertIn("warning: ", result.stderr)
        self.assertIn("seq", result.stderr)

    def test_wrong_shapes_are_code_1(self):
        model = self.model("bert_base_tiny")
        for options in (["--dim", "width=2"], ["--shape", "none=2x3"], ["--shape", "*=2"],
                        ["--shape", "*=2x3", "--dim", "seq=4"], ["--val-range", "none=0,1"],
                        ["--inputs", "missing"], ["--input", "none=x.npy"]):
            self.run_command("run", model, *self.mode, *options, code=1)

    def test_inputs_from_files(self):
        described = self.run_json("inspect", self.model())
        name, type_text = described["inputs"][0]["name"], described["inputs"][0]["type"]
        shape = [int(extent) if extent.strip().isdigit() else 1 for extent in type_text.split("[")[1][:-1].split(",")]
        count = 1
        for extent in shape:
            count *= extent
        data = struct.pack(f"<{count}f", *[(i % 17) / 16 for i in range(count)])
        file = npy("<f4", shape, data)
        (self.path / "in").mkdir(exist_ok=True)
        (self.path / "in" / (name.replace("/", "_").replace(":", "_") + ".npy")).write_bytes(file)
        (self.path / "single.npy").write_bytes(file)
        for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            with zipfile.ZipFile(self.path / f"in{kind}.npz", "w", kind) as archive:
                archive.writestr(name + ".npy", file)
        results = [self.run_model("resnet50_tiny", *options)["outputs"]
                   for options in (["--inputs", "in"], ["--input", f"{name}=single.npy"],
                                   ["--inputs", f"in{zipfile.ZIP_STORED}.npz"],
                                   ["--inputs", f"in{zipfile.ZIP_DEFLATED}.npz"])]
        for result in results[1:]:
            self.assertEqual(result, results[0])
        for bad in (file[:-1], file[:20], b"", npy("<f8", shape, data + data), npy("<f4", [count], data)):
            (self.path / "bad.npy").write_bytes(bad)
            error = self.run_command("run", self.model(), *self.mode, "--input", f"{name}=bad.npy", code=1).stderr
            self.assertTrue("bad.npy" in error or name in error, error)

    def test_a_full_disk_is_an_error(self):
        (self.path / "file").write_text("in the way")
        self.run_command("run", self.model(), *self.mode, "--output-dir", "file/out", code=1)
        if os.path.exists("/dev/full"):
            (self.path / "full").mkdir(exist_ok=True)
            if not (self.path / "full" / "0.npy").is_symlink():
                (self.path / "full" / "0.npy").symlink_to("/dev/full")
            self.run_command("run", self.model(), *self.mode, "--output-dir", "full", code=1)

    def test_inner_tensors_may_be_asked_for(self):
        text = self.run_command("dump", self.model()).stdout
        inner = [line.split('"')[5] for line in text.splitlines() if line.startswith("model ") and '"Conv"' in line]
        outputs = self.run_model("resnet50_tiny", "--output-tensor", inner[0], "--output-tensor", inner[1])["outputs"]
        self.assertEqual([row["name"] for row in outputs[-2:]], inner[:2])
        self.assertEqual(len(outputs), 2 + len(self.run_model("resnet50_tiny")["outputs"]))
        self.run_command("run", self.model(), *self.mode, "--output-tensor", "no such tensor", code=1)

    def test_inner_tensors_by_pattern_and_by_node(self):
        delivered = len(self.run_model("resnet50_tiny")["outputs"])

        def asked(*wanted):
            options = [word for name in wanted for word in ("--output-tensor", name)]
            return [row["name"] for row in self.run_model("resnet50_tiny", *options)["outputs"][delivered:]]

        relus = asked("Relu_*")
        self.assertGreater(len(relus), 3)
        self.assertEqual(asked("Relu#1"), relus[1:2])
        self.assertEqual(asked("node_" + relus[0]), relus[:1])
        self.assertEqual(asked("node_" + relus[0], "Relu_*"), relus)
        self.assertEqual(asked("logits"), [])
        error = self.run_json("run", self.model(), *self.mode, "--output-tensor", relus[0] + "x", code=1)["error"]
        self.assertIn(f"'{relus[0]}'", error["hint"])
        self.assertEqual(error["file"], str(self.model()))
        self.run_command("run", self.model(), *self.mode, "--output-tensor", "Relu#99", code=1)
        self.run_command("run", "missing.onnx", *self.mode, "--output-tensor", "x", code=1)

    def test_quiet_says_nothing(self):
        result = self.run_command("run", self.model(), *self.mode, "--quiet")
        self.assertEqual((result.stdout, result.stderr), ("", ""))


if __name__ == "__main__":
    FUSEWISE = os.path.abspath(sys.argv.pop(1))
    unittest.main()
