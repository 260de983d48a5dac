"""Makes the wheel: the package of this folder, with the shared library and the programs of a CMake build inside.

OXBOW_NATIVE names a prefix that `cmake --install` has filled (lib/liboxbow.so, bin/oxbow-convert, bin/oxbow), for a build
elsewhere, such as a cross build; OXBOW_PLATFORM then names the platform, such as linux_aarch64. Without it the sources around this
folder are compiled.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import tempfile
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


def platform():
    return os.environ.get("OXBOW_PLATFORM") or sysconfig.get_platform().replace("-", "_").replace(".", "_")


def compile_native(prefix):
    """The shared library and the programs, which find it beside them."""
    build = pathlib.Path(os.environ.get("OXBOW_BUILD_DIR") or ROOT / "build-wheel")
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON", "-DOXBOW_BUILD_TESTS=OFF", "-DOXBOW_WITH_XNNPACK=OFF",
               "-DOXBOW_WITH_ACL=OFF", "-DOXBOW_WITH_JNI=OFF", "-DOXBOW_WITH_VULKAN=OFF", "-DCMAKE_INSTALL_LIBDIR=lib",
               "-DCMAKE_INSTALL_RPATH=$ORIGIN"]
    subprocess.run(["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", *options], check=True)
    subprocess.run(["cmake", "--build", str(build)], check=True)
    subprocess.run(["cmake", "--install", str(build), "--prefix", str(prefix), "--strip"], check=True)


def native_files(prefix):
    """What is packed, and under which name."""
    return {"liboxbow.so": prefix / "lib/liboxbow.so", "liboxbow.so.0.1": prefix / "lib/liboxbow.so",
            "oxbow-convert": prefix / "bin/oxbow-convert", "oxbow": prefix / "bin/oxbow"}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"oxbow-{version()}"
    tag = f"py3-none-{platform()}"
    wheel = pathlib.Path(wheel_directory) / f"{name}-{tag}.whl"
    records = []
    with tempfile.TemporaryDirectory() as work, zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as out:
        def add(path, data, mode=0o644):
            info = zipfile.ZipInfo(path, DATE)
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{path},sha256={digest},{len(data)}")

        prefix = pathlib.Path(os.environ.get("OXBOW_NATIVE") or work)
        if "OXBOW_NATIVE" not in os.environ:
            compile_native(prefix)
        for source in sorted((HERE / "oxbow").glob("*.py")) + [HERE / "oxbow/py.typed"]:
            add(f"oxbow/{source.name}", source.read_bytes())
        for file, source in native_files(prefix).items():
            # The library is asked for by its soname by the programs and by its plain name by Python; zip has no links.
            if file == "liboxbow.so":
                continue
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
