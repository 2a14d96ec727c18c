"""The requests of the command line, or the library, to the agent: types that both sides import."""

from __future__ import annotations

import msgspec

from lockcheck.client.worker import WorkerOrders
from lockcheck.history import Event
from lockcheck.nemesis.base import Plan, StepOrders
from lockcheck.nodes.node import NodeSpec
from lockcheck.servers.base import Question

NEMESIS_FILE = "nemesis.jsonl"
STORAGE_FILE = "storage.jsonl"


class NodeOrders(msgspec.Struct, frozen=True, kw_only=True):
    """How to start a node's program, any number of times. Paths are as the node itself sees them;
    `container` is the first process of its container, if it has one."""

    spec: NodeSpec
    command: tuple[str, ...]  # empty: nothing runs there until a program is started
    environment: dict[str, str] = {}
    container: int = 0
    beside: int = 0  # the first process of a container of the user's own image, in its network
    address: str = ""
    data: str = ""  # its data folder
    data_mb: int = 0
    files: dict[str, str] = {}  # in its data folder, by name
    as_ordinary_user: bool = False
    start_after_ms: int = 0
    port: int = 0
    ready: Question | None = None  # for servers; a client reports by itself that it is ready
    leader: Question | None = None
    version_command: tuple[str, ...] = ()  # prints the server's version
    version_pattern: str = ""

    @property
    def name(self) -> str:
        return self.spec.name


class LedgerOrders(msgspec.Struct, frozen=True):
    """The node whose storage gives its ledger at the end, and its kind of storage."""

    node: str
    storage: str


class NemesisOrders(msgspec.Struct, frozen=True):
    """The faults of the run, in sequences, and the run as they see it."""

    sequences: tuple[tuple[StepOrders, ...], ...]
    plan: Plan


class BeginOrders(msgspec.Struct, frozen=True):
    """Begins the run. The agent adds the origin of time to the clients' orders."""

    workers: tuple[WorkerOrders, ...]


class EndOrders(msgspec.Struct, frozen=True):
    """Ends the run. `at_once`: heal now and kill the clients, instead of letting them finish."""

    at_once: bool
    grace_s: float
    ledger: LedgerOrders | None


class Ended(msgspec.Struct, frozen=True):
    """How the clients ended: which had to be killed, and which had crashed before."""

    killed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()


# --- the library: no clients of ours, no schedule ------------------------------------------------


class StrikeOrders(msgspec.Struct, frozen=True):
    number: int  # that its heal will name
    step: StepOrders
    nodes: tuple[str, ...]  # empty: its aim chooses


class Struck(msgspec.Struct, frozen=True):
    """The fault's events in the history, by the agent's clock."""

    begun: Event
    proven: Event


class ProgramOrders(msgspec.Struct, frozen=True):
    """Starts a program; the stream carries its standard output and input."""

    stream: int
    node: str
    command: tuple[str, ...]
    environment: dict[str, str]


class NotStarted(msgspec.Struct, frozen=True):
    """The reply if the program cannot be started: the user can mend that."""

    reason: str
    cure: str


class ConnectOrders(msgspec.Struct, frozen=True):
    """Opens a connection from one node to a port of another."""

    stream: int
    via: str
    to: str
    port: int


class Piece(msgspec.Struct, frozen=True):
    """Bytes that are sent into a stream; an empty piece ends it."""

    stream: int
    data: bytes


class Taken(msgspec.Struct, frozen=True):
    """So many more of the bytes that came out of a stream are no longer waiting."""

    stream: int
    number: int


class Signal(msgspec.Struct, frozen=True):
    stream: int
    number: int
