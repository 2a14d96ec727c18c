"""The clocks of real processes, moved and given back; what must not be touched is not touched."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from lockcheck.errors import FaultError
from lockcheck.nemesis.clock import vdso_code
from lockcheck.nemesis.clock.engines import VdsoClocks, offset_ns, read_by
from lockcheck.nemesis.clock.skew import NS_PER_S, TRUE, ClockLine, Skew, true_ns
from lockcheck.nemesis.clock.vdso import Vdso
from lockcheck.nemesis.clock.vdso_code import LINE, PROCESSORS, this_processor
from lockcheck.nemesis.clock.vdso_image import kernels_image, prepared
from lockcheck.nodes.node import Role
from lockcheck.servers.base import Clock
from tests.processes import OneProcess
from tests.waiting import wait_for

pytestmark = pytest.mark.skipif(this_processor() is None, reason="clocks cannot be moved here")

# Prints the time as it reads it, in four ways, for each line of input.
PRINTING = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
libc.time.restype = ctypes.c_long
for _ in sys.stdin:
    of_day = (ctypes.c_long * 2)()
    libc.gettimeofday(of_day, None)
    shown = time.time_ns(), time.monotonic_ns(), of_day[0] * 10**9 + of_day[1] * 1000
    print(*shown, libc.time(None) * 10**9, flush=True)
"""
S = NS_PER_S
NOBODY = 65534


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            ask(process)  # before it runs a program it has no vDSO of that
            yield process
        finally:
            process.kill()


def test_a_process_that_is_ending_has_no_clock_to_move() -> None:
    """PostgreSQL's come and go with the connections; without memory they are as good as ended."""
    child = os.fork()
    if not child:
        os._exit(0)
    try:
        wait_for(lambda: not Path(f"/proc/{child}/maps").read_bytes(), "it has no memory")
        with pytest.raises(ProcessLookupError):  # as of one that has ended: it is passed over
            Vdso(child)
    finally:
        os.waitpid(child, 0)


def ask(process: subprocess.Popen[str]) -> list[float]:
    """By how many seconds its clocks are off: wall, monotonic, wall, wall."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("now\n")
    process.stdin.flush()
    shown = [int(word) for word in process.stdout.readline().split()]
    wall, monotonic = true_ns(Clock.WALL), true_ns(Clock.MONOTONIC)
    truth = (wall, monotonic, wall, wall)
    return [(read - true) / S for read, true in zip(shown, truth, strict=True)]


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    os.waitpid(pid, os.WUNTRACED)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def led(pid: int) -> Iterator[Vdso]:
    vdso = Vdso(pid)
    with stopped(pid):
        vdso.redirect()
    try:
        yield vdso
    finally:
        vdso.close()


def functions_of(pid: int) -> bytes:
    """All of its vDSO that can ever run by nature."""
    return Vdso(pid)._at(0, kernels_image().place)


def test_wall_and_monotonic_are_moved_apart_and_right_again() -> None:
    with running(PRINTING) as process:
        assert ask(process) == pytest.approx([0, 0, 0, -0.5], abs=2)
        with led(process.pid) as vdso:
            assert ask(process) == pytest.approx([0, 0, 0, -0.5], abs=2)
            vdso.apply(Skew(TRUE.jumped(1000 * S), TRUE.jumped(-50 * S)))
            assert ask(process) == pytest.approx([1000, -50, 1000, 999.5], abs=2)
            vdso.apply(Skew(wall=TRUE.jumped(-3 * 10**9 * S)))  # long before 1970
            assert ask(process) == pytest.approx([-3e9, 0, -3e9, -3e9], abs=2)
            with stopped(process.pid):
                assert not vdso.has_thread_in_jumps()
                vdso.restore()
            assert ask(process) == pytest.approx([0, 0, 0, -0.5], abs=2)
        assert functions_of(process.pid) == functions_of(os.getpid())
        with led(process.pid) as vdso:  # and once more
            assert vdso.skew() == Skew()
            assert ask(process) == pytest.approx([0, 0, 0, -0.5], abs=2)


def test_what_is_read_from_outside_is_what_it_is_told() -> None:
    with running(PRINTING) as process, led(process.pid) as vdso:
        vdso.apply(Skew(TRUE.jumped(-7 * S), TRUE.jumped(30 * S)))
        for clock, by_s in ((Clock.WALL, -7), (Clock.MONOTONIC, 30)):
            assert offset_ns(clock, read_by(vdso, clock)) == pytest.approx(by_s * S, abs=10**7)
        assert ask(process)[:2] == pytest.approx([-7, 30], abs=2)


@pytest.mark.parametrize("rate", [0.5, 3.0])
def test_a_clock_goes_at_its_rate(rate: float) -> None:
    with running(PRINTING) as process, led(process.pid) as vdso:
        began_ns = true_ns(Clock.MONOTONIC)
        line = TRUE.going_at(rate, began_ns)
        vdso.apply(Skew(monotonic=line))
        readings = [vdso.read_ns(Clock.MONOTONIC) for _ in range(1000)]
        assert readings == sorted(readings)
        time.sleep(0.1)  # so that there is something to count
        real_ns, told_ns = true_ns(Clock.MONOTONIC), vdso.read_ns(Clock.MONOTONIC)
        assert told_ns - began_ns == pytest.approx((real_ns - began_ns) * rate, abs=10**7)
        assert line.at(real_ns) == pytest.approx(told_ns, abs=10**7)


def test_what_it_forks_inherits_it() -> None:
    waiting = "import os, sys\nsys.stdin.readline()\nprint(0, 0, 0, 0, flush=True)\n"
    waiting += "sys.stdin.readline()\npid = os.fork()\nif pid:\n  os.wait()\n"
    child = "".join(f"  {line}\n" for line in PRINTING.strip().splitlines())
    with running(f"{waiting}else:\n{child}") as process:
        assert process.stdin is not None
        with led(process.pid) as vdso:
            vdso.apply(Skew(TRUE.jumped(500 * S), TRUE.jumped(60 * S)))
            process.stdin.write("fork\n")
            assert ask(process)[:2] == pytest.approx([500, 60], abs=2)


# --- under load ----------------------------------------------------------------------------------

# The kernel's own answer.
KERNELS = """
import ctypes, platform, sys, threading, time
libc = ctypes.CDLL(None)
number = {"x86_64": 228, "aarch64": 113}[platform.machine()]

def kernels(clock):
    timespec = (ctypes.c_long * 2)()
    libc.syscall(number, clock, timespec)
    return timespec[0] * 10**9 + timespec[1]
"""
# Reads both clocks in two threads, as fast as it can, and compares them with the kernel's own
# answer before and after: by one of the distances it has to be off.
READING = f"""{KERNELS}
offsets = [int(word) for word in sys.argv[1:]]
over = threading.Event()
reads, wrong = [0, 0], []

def read(place, clock):
    while not over.is_set():
        before, read_ns, after = kernels(clock), time.clock_gettime_ns(clock), kernels(clock)
        reads[place] += 1
        if not any(before + by <= read_ns <= after + by for by in offsets):
            wrong.append((before, read_ns, after))

print("ready", flush=True)
threads = [threading.Thread(target=read, args=each) for each in ((0, 0), (1, 1))]
for thread in threads: thread.start()
sys.stdin.readline()
over.set()
for thread in threads: thread.join()
print(min(reads), len(wrong), wrong[:3])
"""
CHANGES, LOAD_S = 3000, 3.0


def await_ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"


def test_thousands_of_changes_under_load_are_never_read_wrong_and_kill_no_process() -> None:
    """Of lines that begin now each number differs: half of one and half of another is seen."""
    offsets = [0, 30 * S, -3 * S, 86_400 * S]
    command = [sys.executable, "-c", READING, *map(str, offsets)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        await_ready(process)
        vdso = Vdso(process.pid)
        with stopped(process.pid):
            vdso.redirect()
        changes, until = 0, time.monotonic() + LOAD_S
        while changes < CHANGES or time.monotonic() < until:
            by = offsets[changes % len(offsets)]
            now = {clock: true_ns(clock) for clock in (Clock.WALL, Clock.MONOTONIC)}
            lines = [ClockLine(real, real + by) for real in now.values()]
            vdso.apply(Skew(*lines) if by else Skew())
            assert vdso.skew() == (Skew(*lines) if by else Skew())
            changes += 1
        output, _ = process.communicate("enough\n", timeout=60)
    assert process.returncode == 0
    reads, wrong = output.split()[:2]
    assert (int(wrong), int(reads) > 1000) == (0, True), output
    vdso.close()


def test_led_and_restored_again_and_again_under_load() -> None:
    """Whatever a thread does just then: it is never caught within what is overwritten."""
    command = [sys.executable, "-c", READING, "0", str(30 * S)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        await_ready(process)
        clocks = VdsoClocks(OneProcess("r1", process.pid))

        async def to_and_fro() -> None:
            for _ in range(50):
                await clocks.take(Skew(TRUE.jumped(30 * S), TRUE.jumped(30 * S)), time.monotonic_ns)
                await clocks.give_back()

        asyncio.run(asyncio.wait_for(to_and_fro(), 120))
        assert functions_of(process.pid) == functions_of(os.getpid())
        output, _ = process.communicate("enough\n", timeout=60)
    assert process.returncode == 0
    assert output.split()[1] == "0", output


# Says when it last read the right time at the earliest, and when it had read a wrong one.
NOTICING = f"""{KERNELS}
right = before = kernels(1)
print("ready", flush=True)
while time.time_ns() < kernels(0) + 10**9:
    right = before
    before = kernels(1)
print(right, kernels(1))
"""


def test_the_moment_before_is_after_the_last_right_reading_and_before_the_first_wrong() -> None:
    command = [sys.executable, "-c", NOTICING]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        await_ready(process)
        clocks = VdsoClocks(OneProcess("r1", process.pid))
        taken = clocks.take(Skew(wall=TRUE.jumped(30 * S)), time.monotonic_ns)
        before_ns = asyncio.run(asyncio.wait_for(taken, 60))
        output, _ = process.communicate(timeout=60)
    right_ns, wrong_ns = map(int, output.split())
    assert right_ns < before_ns < wrong_ns


class Several(OneProcess):
    """Lists processes that have ended just now."""

    def __init__(self, *pids: int) -> None:
        super().__init__("p1", pids[0], Role.SERVER)
        self._pids = [*pids]

    def pids(self) -> list[int]:
        return self._pids


def test_a_process_that_ends_meanwhile_is_left_out() -> None:
    """As a server's process for one connection does."""
    away = Skew(wall=TRUE.jumped(30 * S))
    with running(PRINTING) as stays, running(PRINTING) as ends:
        clocks = VdsoClocks(Several(stays.pid, ends.pid))
        assert len(asyncio.run(clocks.offsets_ns(Clock.WALL))) == 2  # both are open
        ends.kill()
        ends.wait()
        with led(stays.pid):
            clocks.apply(away)
            assert clocks.are_set_to(away)
            [offset_ns] = asyncio.run(clocks.offsets_ns(Clock.WALL))
            assert abs(offset_ns - 30 * S) < S
        clocks.close()


# --- what is refused, before anything is touched --------------------------------------------------


def test_an_unknown_processor_is_refused() -> None:
    with pytest.raises(FaultError, match="only on x86_64 and aarch64"):
        prepared(kernels_image().data, None)
    others = [each for each in PROCESSORS.values() if each != this_processor()]
    with pytest.raises(FaultError, match="can be moved only on"):
        prepared(kernels_image().data, others[0])


def test_too_little_room_is_refused() -> None:
    processor = this_processor()
    assert processor is not None
    long = replace(processor, code=processor.code + bytes(1 << 14))
    with pytest.raises(FaultError, match="has no room"):
        prepared(kernels_image().data, long)


def test_a_vdso_that_another_program_has_changed_is_left_alone() -> None:
    with running(PRINTING) as process:
        with led(process.pid) as vdso:
            vdso._write(next(iter(kernels_image().jumps)), b"\x90" * 5)
            changed = vdso._at(0, len(kernels_image().data))
        with pytest.raises(FaultError, match="it has been changed"):
            Vdso(process.pid)
        with Path(f"/proc/{process.pid}/mem").open("rb") as memory:
            memory.seek(vdso._start)
            assert memory.read(len(changed)) == changed


def test_another_users_process_is_refused() -> None:
    if os.geteuid():
        pytest.skip("only root can become another user")
    with running(PRINTING) as process:
        error = as_nobody(lambda: Vdso(process.pid))
        assert "cannot be" in error
        assert "ptrace" in error
        assert not Vdso(process.pid).is_redirected


def as_nobody(act: Callable[[], object]) -> str:
    """In a child without any rights over others: what it raises, in words."""
    kernels_image()  # read by now: the child need not
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
        try:
            act()
        except Exception as error:  # noqa: BLE001 - it is returned
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        raised = pipe.read()
    os.waitpid(child, 0)
    return raised


def test_a_process_that_has_ended_is_refused() -> None:
    with running(PRINTING) as process:
        vdso = Vdso(process.pid)
        process.kill()
        process.wait()
        with pytest.raises(ProcessLookupError):
            vdso.apply(Skew())
        vdso.close()


# --- the code itself ------------------------------------------------------------------------------

TOOLS = {"x86_64": "x86_64-linux-gnu-", "aarch64": "aarch64-linux-gnu-"}


@pytest.mark.parametrize("name", PROCESSORS)
def test_the_bytes_are_those_of_the_source(name: str, tmp_path: Path) -> None:
    assembled = binary(name, tmp_path)
    processor = PROCESSORS[name]
    assert assembled == processor.code + bytes(8)
    assert processor.turn % 8 == 0
    assert processor.size == len(assembled) + 4 * LINE.size


def binary(name: str, folder: Path) -> bytes:
    prefix = TOOLS[name]
    if shutil.which(f"{prefix}as") is None:
        pytest.skip(f"no assembler for {name}: apt-get install binutils-{prefix.strip('-')}")
    source = Path(vdso_code.__file__).with_name(f"vdso_{name}.S")
    made, code = folder / "made.o", folder / "code"
    subprocess.run([f"{prefix}as", "-o", made, source], check=True)
    subprocess.run([f"{prefix}objcopy", "-O", "binary", "-j", ".text", made, code], check=True)
    return code.read_bytes()


# A program for the other processor, where it is emulated: the kernel's own answer, and ours, for
# all clocks, at several lines.
CALLING = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

int main(int count, char **names) {
    FILE *file = fopen(names[1], "rb");
    int all = PROT_READ | PROT_WRITE | PROT_EXEC;
    char *code = mmap(0, 65536, all, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t turn = fread(code, 1, 4096, file) - 8;
    int (*gettime)(int, struct timespec *) = (void *)code;
    int (*timeofday)(struct timeval *, void *) = (void *)(code + 0xC0);
    __builtin___clear_cache(code, code + turn);
    int64_t *lines = (int64_t *)(code + turn + 8);
    int64_t rates[] = {1LL << 32, 1LL << 31, 3LL << 32};
    int64_t jumps[] = {0, 30000000000LL, -5000000000LL, -3000000000000000000LL};
    for (int r = 0; r < 3; r++) for (int j = 0; j < 4; j++) for (int id = 0; id < 12; id++) {
        if (id == 2 || id == 3 || id == 8 || id == 9 || id == 10) continue;
        struct timespec before, shown, after, from;
        clock_gettime(id, &from);
        int64_t real = from.tv_sec * 1000000000LL + from.tv_nsec;
        int table = (r + j) & 1, wall = id == 0 || id == 5 || id == 11;
        memset(lines, 0x55, 96);
        int64_t *line = lines + table * 6 + (wall ? 0 : 3);
        line[0] = real; line[1] = real + jumps[j]; line[2] = rates[r];
        code[turn] = (char)(table + 2 * id);
        clock_gettime(id, &before);
        int failed = gettime(id, &shown);
        clock_gettime(id, &after);
#define SINCE(t) ((t).tv_sec * 1000000000LL + (t).tv_nsec - real)
#define AT(t) ((int64_t)((__int128)SINCE(t) * rates[r] >> 32))
        int64_t seen = shown.tv_sec * 1000000000LL + shown.tv_nsec - real - jumps[j];
        int right = !failed && AT(before) <= seen && seen <= AT(after)
            && shown.tv_nsec >= 0 && shown.tv_nsec < 1000000000;
        if (id == 0) {
            struct timeval day; struct timezone { int a, b; } zone = {1, 1};
            right &= timeofday(&day, &zone) == 0 && zone.a == 0 && zone.b == 0;
            right &= day.tv_sec >= shown.tv_sec && day.tv_sec <= shown.tv_sec + 4;
            right &= day.tv_usec >= 0 && day.tv_usec < 1000000;
        }
        printf("%s", right ? "." : "X");
    }
    struct timespec cpu = {-1, -1};
    printf("%d%d\\n", gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu), cpu.tv_sec >= 0);
}
"""


@pytest.mark.parametrize("name", ["aarch64"])
def test_the_code_tells_the_time_on_another_processor_emulated(name: str, tmp_path: Path) -> None:
    compiler, emulator = f"{TOOLS[name]}gcc", f"qemu-{name}"
    if shutil.which(compiler) is None or shutil.which(emulator) is None:
        pytest.skip("apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user")
    assert PROCESSORS[name].enters["__kernel_gettimeofday"] == 0xC0
    (tmp_path / "code").write_bytes(binary(name, tmp_path))
    (tmp_path / "calling.c").write_text(CALLING)
    program = tmp_path / "calling"
    subprocess.run([compiler, "-static", "-O1", "-o", program, tmp_path / "calling.c"], check=True)
    done = subprocess.run(
        [emulator, program, tmp_path / "code"], check=True, capture_output=True, text=True
    )
    assert done.stdout == "." * (3 * 4 * 7) + "01\n"
