#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Part of Trellis, an expression-graph PDE solver framework.
# ctest: timeout=300
"""The elementary functions give the same bits with every compiler, level of optimisation and instruction set.

Compilers: cc, gcc and clang where present. Where there is a CUDA Toolkit, nvcc and NVRTC compile the functions; on a
machine with a GPU its bits are compared, too. Where gcc says which loops it made into vectors, all that have no branch
must be.
"""
import concurrent.futures
import ctypes
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("TRELLIS_SOURCE", pathlib.Path(__file__).parents[2])).resolve()
BODIES = ROOT / "expressions/lang"
SOURCE = ROOT / "tests/expressions/function_bits.c"
COMMON = ["-std=c17", "-ffp-contract=off", "-Wall", "-Wpedantic", "-Werror", f"-I{BODIES}"]
VECTORS = ["-O3", "-fno-math-errno", "-fno-trapping-math"]
NUMBERS = "1000000" if "TRL_TEST_LONG" in os.environ else "200000"


def variants():
    """(name, options, cpu flags that it needs)"""
    yield "-O0", ["-O0"], ()
    yield "-O2", ["-O2"], ()
    yield "-O3", VECTORS, ()
    if platform.machine() == "x86_64":
        yield "avx2", VECTORS + ["-march=x86-64-v3"], ("avx2", "fma")
        yield "avx512", VECTORS + ["-march=x86-64-v4", "-mprefer-vector-width=512"], ("avx512f", "avx512dq", "avx512vl")


def cpu_flags():
    text = pathlib.Path("/proc/cpuinfo").read_text() if os.path.exists("/proc/cpuinfo") else ""
    return set(re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)[1].split()) if "flags" in text else set()


def run(program):
    return subprocess.run([program, NUMBERS], capture_output=True, text=True)


def build_and_run(job):
    compiler, name, options, needs, folder = job
    program = folder / f"{compiler}{name}"
    subprocess.run([compiler] + COMMON + options + [SOURCE, "-o", program, "-lm"], check=True)
    return f"{compiler} {name}", run(program).stdout if cpu_flags().issuperset(needs) else None


def loops_without_vectors():
    """Names of the loops without a branch that gcc leaves scalar."""
    if not shutil.which("gcc") or platform.machine() != "x86_64":
        return []
    command = ["gcc"] + COMMON + VECTORS + ["-march=x86-64-v3", "-S", SOURCE, "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    loops = re.findall(r"^(loop_\w+)(?:\.\w+)*:\n(.*?)^\t\.size\t\1", text, re.MULTILINE | re.DOTALL)
    branched = {"loop_sin", "loop_cos", "loop_tan", "loop_fmod"}
    scalar = [name for name, body in loops if name not in branched and "%ymm" not in body]
    return scalar if len(loops) > 30 else ["none was found"]


def cuda_program(folder):
    """What a device computes: None without a compiler or a device."""
    compiler = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if not compiler:
        return None
    program = folder / "cuda"
    command = [
        compiler, "-std=c++17", "-O3", "-fmad=false", "-arch=sm_90", f"-I{BODIES}", "-x", "cu",
        str(SOURCE), "-o", program
    ]
    subprocess.run(command, check=True)
    print("nvcc compiles the functions")
    done = run(program)
    return done.stdout if done.returncode == 0 else None


def compile_with_nvrtc():
    folders = ["", "/usr/local/cuda/lib64/"]
    for path in [folder + "libnvrtc.so" for folder in folders]:
        try:
            nvrtc = ctypes.CDLL(path)
            break
        except OSError:
            continue
    else:
        return
    names = ["trl_functions_body.h"] + [path.name for path in BODIES.glob("trl_functions_*_body.h")]
    texts = [(BODIES / name).read_bytes() for name in names]
    source = b"""#define TRL_BODY static __device__ __forceinline__
#include <trl_functions_body.h>
#define ONE(NAME, name, doc) out[i] += trl_fn_##name(a[i]);
#define TWO(NAME, name, doc) out[i] += trl_fn_##name(a[i], b[i]);
extern "C" __global__ void all(const double *a, const double *b, double *out)
{
    int i = threadIdx.x;
    TRL_FUNCTION_LIST(ONE, TWO, ONE, TWO)
    TWO(POW, pow, "")
}
"""
    program = ctypes.c_void_p()
    array = ctypes.c_char_p * len(names)
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"functions.cu", len(names), array(*texts),
                             array(*[name.encode() for name in names]))
    options = [b"--fmad=false", b"--gpu-architecture=sm_90"]
    error = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if error:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"NVRTC does not compile the functions:\n{log.value.decode()}")
    print("NVRTC compiles the functions")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        compilers = [c for c in ("gcc", "clang") if shutil.which(c)] or ["cc"]
        jobs = [(c, v, options, needs, folder) for c in compilers for v, options, needs in variants()]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(build_and_run, jobs))
        results.append(("CUDA device", cuda_program(folder)))
    compile_with_nvrtc()
    first, expected = results[0]
    wrong = 0
    for name, found in results:
        print(f"{name}: {'not run' if found is None else 'as ' + first if found == expected else 'OTHER BITS'}")
        for a, b in zip(expected.splitlines(), (found or expected).splitlines()):
            if a != b:
                print(f"    {a.rsplit(' ', 1)[0]}")
                wrong += 1
    for name in loops_without_vectors():
        print(f"gcc makes no vectors of {name}")
        wrong += 1
    sys.exit(1 if wrong or len(expected.splitlines()) < 30 else 0)


if __name__ == "__main__":
    main()
