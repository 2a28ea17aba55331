"""Installs the build into an empty folder, moves it, and uses it as strangers would: the command, CMake, pkg-config.

usage: install_test.py BUILD_FOLDER CXX_COMPILER
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

MODEL = "mobilenet_v2_tiny"
CONSUMER = pathlib.Path(__file__).resolve().parent / "consumer"


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, timeout=300, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} ended with {result.returncode}:\n{result.stdout}")
    return result.stdout


def library_folder(prefix):
    return next(prefix.rglob("libfusewise.so")).parent


def with_pkgconfig(prefix, folder, compiler, model):
    if shutil.which("pkg-config") is None:
        print("left out: pkg-config is not installed")
        return
    libraries = library_folder(prefix)
    environment = dict(os.environ, PKG_CONFIG_PATH=str(libraries / "pkgconfig"), LD_LIBRARY_PATH=str(libraries))
    flags = run("pkg-config", "--cflags", "--libs", "fusewise", env=environment).split()
    program = folder / "by_pkgconfig"
    run(compiler, "-std=c++20", CONSUMER / "consumer.cpp", *flags, "-o", program)
    print(run(program, model, env=environment), end="")


def with_cmake(prefix, folder, compiler, model):
    build = folder / "build"
    run("cmake", "-S", CONSUMER, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_CXX_COMPILER={compiler}")
    run("cmake", "--build", build)
    print(run(build / "consumer", model), end="")


def main(build, compiler):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first, prefix = folder / "first", folder / "prefix"
        run("cmake", "--install", build, "--prefix", first)
        # What is installed may be moved.
        first.rename(prefix)
        model = folder / f"{MODEL}.onnx"
        command = prefix / "bin" / "fusewise"
        run(command, "zoo", MODEL, "-o", model)
        print(run(command, "run", model, "--cache", "off"), end="")
        with_cmake(prefix, folder, compiler, model)
        with_pkgconfig(prefix, folder, compiler, model)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), sys.argv[2])
