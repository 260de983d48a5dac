"""Makes the wheel: the package of this folder, with the shared library and the programs of a CMake build inside.

The sources around this folder are compiled, by the CMake preset `wheel` or the one that OXBOW_PRESET names: wheel-arm64 is a cross
build for 64-bit ARM. OXBOW_NATIVE names a folder that has them already: lib/liboxbow.so, bin/oxbow-convert, bin/oxbow.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
# Readers of a wheel want a date; a fixed one makes the same files from the same sources.
DATE = (1980, 1, 1, 0, 0, 0)


def version():
    header = (ROOT / "runtime/api/oxbow.h").read_text()
    return ".".join(re.search(rf"#define OXB_VERSION_{part} (\d+)", header).group(1) for part in ("MAJOR", "MINOR", "PATCH"))


def metadata():
    readme = (HERE / "README.md").read_text()
    return (f"Metadata-Version: 2.1\nName: oxbow\nVersion: {version()}\n"
            "Summary: Long-context transformers over endless streams, in a memory fixed before the first token\n"
            "License: Apache-2.0\nRequires-Python: >=3.9\nRequires-Dist: numpy\n"
            f"Description-Content-Type: text/markdown\n\n{readme}")


def compile_native():
    """The folder of the shared library and the programs, compiled."""
    preset = os.environ.get("OXBOW_PRESET") or "wheel"
    subprocess.run(["cmake", "--preset", preset], cwd=ROOT, check=True)
    subprocess.run(["cmake", "--build", "--preset", preset], cwd=ROOT, check=True)
    return ROOT / f"build-{preset}"


def native_files(native):
    """What is packed, and under which name: the library's is its soname, as zip has no links."""
    return {"liboxbow.so.0.1": native / "lib/liboxbow.so", "oxbow-convert": native / "bin/oxbow-convert", "oxbow": native / "bin/oxbow"}


def platform(files):
    """The tag of files that need nothing but a C library, which says how new that must be; else one that promises nothing."""
    told = subprocess.run(["readelf", "-h", "-d", "-V", *map(str, files)], check=True, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "LC_ALL": "C"}).stdout
    machine = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}[re.search(r"Machine:\s*(.*)", told)[1].strip()]
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", told))
    if [name for name in needed if not re.fullmatch(r"(libc|libm|libdl|libpthread|ld-linux.*)\.so\.[0-9]", name)]:
        return f"linux_{machine}"
    return f"manylinux_2_{max(map(int, re.findall(r'GLIBC_2[.]([0-9]+)', told)))}_{machine}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    files = native_files(pathlib.Path(os.environ["OXBOW_NATIVE"]) if "OXBOW_NATIVE" in os.environ else compile_native())
    name = f"oxbow-{version()}"
    tag = f"py3-none-{platform(files.values())}"
    wheel = pathlib.Path(wheel_directory) / f"{name}-{tag}.whl"
    records = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        def add(path, data, mode=0o644):
            info = zipfile.ZipInfo(path, DATE)
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(data)}")

        for source in sorted((HERE / "oxbow").glob("*.py")) + [HERE / "oxbow/py.typed"]:
            add(f"oxbow/{source.name}", source.read_bytes())
        for file, source in files.items():
            add(f"oxbow/native/{file}", source.read_bytes(), 0o755)
        for file in ("LICENSE", "NOTICE"):
            add(f"{name}.dist-info/{file}", (ROOT / file).read_bytes())
        add(f"{name}.dist-info/METADATA", metadata().encode())
        add(f"{name}.dist-info/WHEEL", f"Wheel-Version: 1.0\nGenerator: oxbow_build\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        records.append(f"{name}.dist-info/RECORD,,")
        info = zipfile.ZipInfo(f"{name}.dist-info/RECORD", DATE)
        out.writestr(info, "\n".join(records) + "\n")
    return wheel.name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("oxbow is packed from its whole source tree: take that, or a wheel")
