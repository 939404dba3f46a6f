"""Bytes through a direction with faults: however they are cut into pieces, the same comes out."""

from hypothesis import given
from hypothesis import strategies as st

from edgeflare_lab.testing import Fault
from edgeflare_lab.testing.fault_plan import FaultInjector

DATA = bytes(range(48))

faults = st.lists(
    st.builds(
        Fault,
        kind=st.sampled_from(["drop", "corrupt", "duplicate", "cut", "delay"]),
        at=st.integers(0, 60),
        count=st.integers(1, 6),
        mask=st.integers(1, 255),
    ),
    max_size=4,
)


def passed(plan: list[Fault], sizes: list[int]) -> tuple[list[bytes | Fault], list[Fault]]:
    """Return what comes of DATA in pieces of these sizes, neighbouring bytes joined; and what happened."""
    happened: list[Fault] = []
    injector = FaultInjector(plan, happened.append)
    out: list[bytes | Fault] = []
    begin = 0
    for size in [*sizes, len(DATA)]:
        for piece in injector.apply(DATA[begin : begin + size]):
            assert piece != b""
            if out and isinstance(piece, bytes) and isinstance(out[-1], bytes):
                out[-1] += piece
            else:
                out.append(piece)
        begin += size
    return out, happened


@given(faults, st.lists(st.integers(1, 12), max_size=6))
def test_pieces_make_no_difference(plan: list[Fault], sizes: list[int]) -> None:
    assert passed(plan, sizes) == passed(plan, [])


@given(faults)
def test_faults_within_the_bytes_come_about_and_those_beyond_do_not(plan: list[Fault]) -> None:
    out, happened = passed(plan, [])
    met = [fault for fault in plan if fault.at < len(DATA)]
    handed_on = [piece for piece in out if isinstance(piece, Fault)]
    assert sorted([*handed_on, *happened], key=repr) == sorted(met, key=repr)


def test_bytes_are_lost_changed_and_repeated_where_it_says() -> None:
    cut = Fault("cut", at=20)
    out, _ = passed(
        [
            cut,
            Fault("drop", at=2, count=3),
            Fault("corrupt", at=8, mask=0x80),
            Fault("duplicate", at=12, count=2),
        ],
        [13],
    )
    assert out == [
        bytes([0, 1, 5, 6, 7, 0x88, 9, 10, 11, 12, 13, 12, 13, *range(14, 20)]),
        cut,
        DATA[20:],
    ]


def test_faults_at_one_place_all_come_about() -> None:
    out, _ = passed([Fault("corrupt", at=1, mask=4), Fault("corrupt", at=1, mask=8)], [])
    assert out == [bytes([0, 1 ^ 12]) + DATA[2:]]


def test_a_whole_piece_comes_twice() -> None:
    injector = FaultInjector([Fault("duplicate", at=5, count=0)], lambda _: None)
    assert b"".join(map(bytes, injector.apply(b"abcd"))) == b"abcd"  # type: ignore[arg-type]
    assert not injector.clear
    assert b"".join(map(bytes, injector.apply(b"efgh"))) == b"efghefgh"  # type: ignore[arg-type]
    assert injector.clear
