"""The agent of a cluster, as a process of this host."""

from __future__ import annotations

from pathlib import Path

import lockcheck
from tests.running import processes_of


def agent_of(cluster: lockcheck.Cluster) -> int:
    [agent] = [
        pid
        for pid in processes_of(cluster.folder.name)
        if b"lockcheck.agent.agent" in Path(f"/proc/{pid}/cmdline").read_bytes()
        and not Path(f"/proc/{pid}/comm").read_text().startswith("unshare")
    ]
    return agent
