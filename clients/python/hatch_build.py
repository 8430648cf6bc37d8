"""Makes wheels of a platform, which carry the daemon.

    ABRIDGED_CARRY=target/release/abridged ABRIDGED_PLATFORM=manylinux_2_28_x86_64 python -m build --wheel

Without ABRIDGED_CARRY the wheel is for every platform and carries nothing."""

import os
import sysconfig
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CarryDaemon(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        # An editable install takes the sources as they are.
        if (program := os.environ.get("ABRIDGED_CARRY")) and version == "standard":
            platform = os.environ.get("ABRIDGED_PLATFORM") or sysconfig.get_platform()
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform.replace('-', '_').replace('.', '_')}"
            build_data["force_include"][os.path.abspath(program)] = "abridged/bin/abridged"
