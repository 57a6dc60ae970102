"""A start loads `uuid` without `platform`, and nobody else notices."""

import subprocess
import sys

CODE = """
import sys
from trimtab.cli.light_uuid import import_uuid
import_uuid()
print("uuid" in sys.modules, "platform" in sys.modules)
import msgspec, platform, uuid
text = "12345678-1234-5678-1234-567812345678"
print(msgspec.json.decode(f'"{text}"', type=uuid.UUID) == uuid.UUID(text), uuid.uuid4().version)
print(platform.system(), platform.python_version())
"""


def test_later_imports_get_the_real_module() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    loaded, parsed, real = done.stdout.splitlines()
    assert (loaded == "True False") == (sys.platform == "linux")
    assert parsed == "True 4"
    name = {"linux": "Linux", "darwin": "Darwin"}[sys.platform]
    assert real == f"{name} {'.'.join(map(str, sys.version_info[:3]))}"
