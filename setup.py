"""Builds the certified-pricing kernel: plain shared libraries, one per instruction set, loaded through ctypes.

In place, for development: python setup.py build_ext --inplace
"""

import os
import platform
from pathlib import Path

from setuptools import Extension, setup

KERNEL = Path("src/certimap/mixture/kernel")
# No contraction of a*b+c and no reordering of sums: every variant must give the same bits.
FLAGS = ["-std=c++17", "-O3", "-ffp-contract=off", "-fno-math-errno", "-pthread", "-g0"]
VARIANTS = {"_cpu": []}
if platform.machine().lower() in ("x86_64", "amd64"):
    VARIANTS["_cpu_avx2"] = ["-mavx2"]
    VARIANTS["_cpu"] = ["-Wno-psabi"]
extra = os.environ.get("CERTIMAP_CFLAGS", "").split()  # for example -march=native

setup(
    ext_modules=[
        Extension(
            f"certimap.mixture.kernel.{name}",
            sources=[str(KERNEL / "cpu.cpp"), str(KERNEL / "batch.cpp")],
            depends=[str(header) for header in sorted(KERNEL.glob("*.hpp"))],
            extra_compile_args=FLAGS + flags + extra,
            extra_link_args=["-pthread"],
            language="c++",
        )
        for name, flags in VARIANTS.items()
    ]
)
